"""Under which id a worker claims, with which claim numbers, and whether it may claim now."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import NamedTuple

_ASKED_AGAIN = 0.05
"""Seconds between two requests for a heartbeat while a claim waits for one."""


class Name(NamedTuple):
    """A worker's id, and which claims under it are this worker's."""

    worker_id: str
    first_claim: int
    """The number of this worker's first claim. Lower ones belong to an earlier worker with the same
    id."""


class Identity:
    """Who the worker is in one database. It gets a new id when other workers declared it dead."""

    def __init__(self, worker_id: str, lease: timedelta) -> None:
        self.name = Name(worker_id, 0)
        """Replaced as a whole, so other threads may read it."""
        self._given = worker_id
        self._lease = lease.total_seconds()
        self._numbers = count()
        self.is_registered = False
        self._may_claim = self._ended = False
        self._may_go_on = asyncio.Event()  # set while claims are allowed, and once they have ended
        self.confirmed_at = time.monotonic()
        """When Postgres last took a heartbeat or a registration. Also written by the heartbeat's
        thread.
        """

    @property
    def id(self) -> str:
        return self.name.worker_id

    @property
    def may_claim(self) -> bool:
        """False until the worker is registered, and while other workers hold it for dead."""
        return self._may_claim

    def new_id(self) -> str:
        """An id that no worker has had yet, made from the one in the settings."""
        return f"{self._given[:180]}~{uuid.uuid4().hex[:8]}"

    def register(self, worker_id: str, first_claim: int) -> None:
        """Use this id from now on: Postgres has registered it."""
        self.name = Name(worker_id, first_claim)
        self.is_registered = True
        self._numbers = count(first_claim)
        self.confirmed_at = time.monotonic()

    def allow_claims(self) -> None:
        self._may_claim = True
        self._may_go_on.set()

    def forbid_claims(self) -> None:
        """Make `next_claim` wait: other workers declared this one dead and run its jobs again."""
        self._may_claim = False
        if not self._ended:
            self._may_go_on.clear()

    def end_claims(self) -> None:
        """The worker stops: `next_claim` gives no more, also to those that wait in it."""
        self._ended = True
        self._may_go_on.set()

    async def next_claim(self, ask_for_heartbeat: Callable[[], None]) -> tuple[str, int] | None:
        """The worker's id and a new claim number; None: the worker stops, and claims no more.

        Waits until a heartbeat succeeded within the last lease: otherwise the others may have
        declared this worker dead, and would run again what it claims.
        """
        await self._may_go_on.wait()
        while time.monotonic() - self.confirmed_at > self._lease and not self._ended:
            ask_for_heartbeat()
            await asyncio.sleep(_ASKED_AGAIN)
        return None if self._ended else (self.name.worker_id, next(self._numbers))

    def still(self, worker_id: str) -> bool:
        """False if what was claimed under this id a moment ago is no longer this worker's."""
        return self.name.worker_id == worker_id and self._may_claim
