"""In whose name a worker claims, with which numbers, and whether it may do so now."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import NamedTuple

_ASKED_AGAIN = 0.05
"""Seconds between two questions for a heartbeat while a claim waits for one."""


class Name(NamedTuple):
    """What the others know a worker by."""

    worker_id: str
    first_claim: int
    """Its claims count from here; those below are of somebody else who was called so."""


class Identity:
    """One worker towards one database. It gets a new name when the others believe it dead."""

    def __init__(self, worker_id: str, lease: timedelta) -> None:
        self.name = Name(worker_id, 0)
        """Exchanged whole, so that other threads may read it."""
        self._given = worker_id
        self._lease = lease.total_seconds()
        self._numbers = count()
        self._may_claim = asyncio.Event()
        self.confirmed_at = time.monotonic()
        """When Postgres last took a heartbeat, which writes it from its thread, or a registration.
        """

    @property
    def id(self) -> str:
        """The worker's id."""
        return self.name.worker_id

    @property
    def may_claim(self) -> bool:
        """Not before it is registered, nor while the others believe it dead."""
        return self._may_claim.is_set()

    def new_id(self) -> str:
        """An id that nobody has had yet, made from the one that was given."""
        return f"{self._given[:180]}~{uuid.uuid4().hex[:8]}"

    def register(self, worker_id: str, first_claim: int) -> None:
        """Postgres knows the worker by this name."""
        self.name = Name(worker_id, first_claim)
        self._numbers = count(first_claim)
        self.confirmed_at = time.monotonic()

    def allow_claims(self) -> None:
        """Claims may be made in this name."""
        self._may_claim.set()

    def forbid_claims(self) -> None:
        """The others believe the owner of this name dead, and run its jobs again."""
        self._may_claim.clear()

    async def next_claim(self, ask_for_heartbeat: Callable[[], None]) -> tuple[str, int]:
        """The worker's id and a new claim number.

        Waits until a heartbeat succeeded within the last lease: otherwise the others may have
        declared this worker dead, and would run again what it claims.
        """
        await self._may_claim.wait()
        while time.monotonic() - self.confirmed_at > self._lease:
            ask_for_heartbeat()
            await asyncio.sleep(_ASKED_AGAIN)
        return self.name.worker_id, next(self._numbers)

    def still(self, worker_id: str) -> bool:
        """Whether what was claimed under this id a moment ago is ours."""
        return self.name.worker_id == worker_id and self._may_claim.is_set()
