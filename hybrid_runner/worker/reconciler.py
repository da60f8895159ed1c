"""Puts back what Postgres shows as running here and is not: claims whose answers were lost."""

from __future__ import annotations

import logging
import math
import time
from typing import Protocol

log = logging.getLogger("hybrid_runner.worker")

_HELD = 5.0
"""Seconds until the next try to put back a job whose row somebody held."""


class Releases(Protocol):
    """What it asks of the database."""

    @property
    def session(self) -> int:
        """Which connection since the start this is; 0 while there is none."""

    async def release_lost(self, queue: str, /) -> dict[int, bool]:
        """Put back what Postgres shows as running here and is not; which jobs, and whether it could be done."""


class Reconciler:
    """One queue's. Asked before each look, and at the end."""

    def __init__(self, queue: str, claims: Releases) -> None:
        self._queue = queue
        self._claims = claims
        self._session = 1
        self._try_again_at = math.inf
        self.claim_unanswered = False
        """Written by the claimer: a claim was sent whose answer has not arrived. If the answer is lost,
        jobs may be marked as running here that nobody runs."""

    def is_due(self) -> bool:
        """After a claim whose answer was lost, and on every new connection.

        The server may be another one since, which does not know an outcome that the old one took.
        """
        return self.claim_unanswered or self._claims.session != self._session or time.monotonic() >= self._try_again_at

    async def reconcile(self) -> None:
        """Put back what is due to be; not while a claim is on its way."""
        if not self.is_due():
            return
        released = await self._claims.release_lost(self._queue)
        for job_id in (job_id for job_id, done in released.items() if done):
            log.warning("it does not run here, whatever Postgres was told: queued again", extra={"job": job_id})
        self.claim_unanswered = False
        self._session = self._claims.session
        self._try_again_at = math.inf if all(released.values()) else time.monotonic() + _HELD
