"""Counts the rings of one queue that never arrived, by examining the jobs that fallback polls
find.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.events import LookMade
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.policy.missed_rings import SETTLED, Proof, Sleeper, is_suspect, missed
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.queue.members import Members

_SWEEP = Reason.SWEEP.way
_MOST = 1000
"""So many jobs of one poll are examined."""


class MissedRings:
    """`courtesies` is the connection for questions about jobs; `count` adds to the metrics."""

    def __init__(
        self,
        queue: str,
        courtesies: Fetches,
        listener: Listener,
        members: Members,
        soon: Callable[[Coroutine[Any, Any, None]], None],
        count: Callable[[str, int], None],
    ) -> None:
        self._queue = queue
        self._courtesies = courtesies
        self._listener = listener
        self._members = members
        self._soon = soon
        self._count = count
        self._rung_at: float | None = None
        self._inserts_heard = 0
        self.count = 0
        """Jobs that a fallback poll found although a ring was due."""
        self._last_at: float | None = None

    @property
    def ago(self) -> float | None:
        """Seconds since the last missed ring; None if there was none."""
        return None if self._last_at is None else time.monotonic() - self._last_at

    def heard(self, *, insert: bool) -> None:
        """A message about jobs arrived on the queue's channel."""
        self._rung_at = time.monotonic()
        self._inserts_heard += insert

    def on_look(self, look: LookMade) -> None:
        """Examine what a look found, if a fallback poll caused it."""
        if look.asleep_since is None or not look.claims or look.way != _SWEEP:
            return
        now = time.monotonic()
        rung = None if self._rung_at is None else now - self._rung_at
        sleeper = Sleeper(now - look.asleep_since, rung, self._members.kinds_differ)
        suspects = [
            claim.id
            for claim in look.claims[:_MOST]
            if is_suspect(claim.pickup.total_seconds(), sleeper)
        ]
        if suspects:
            self._soon(self._examine(suspects, alone=self._members.is_alone))

    async def _examine(self, suspects: list[int], *, alone: bool) -> None:
        inserts_heard = self._inserts_heard
        try:
            bell_open, inserted_as_due = await worker_calls.find_unannounced(
                self._courtesies, self._queue, suspects
            )
        except RunnerError:
            return  # not worth a second try
        await asyncio.sleep(SETTLED)
        rung = self._inserts_heard > inserts_heard
        count = missed(
            Proof(
                inserted_as_due,
                bell_open=bell_open,
                alone=alone,
                rung=rung,
                hearing=self._listener.hearing,
            )
        )
        if count:
            self.count += count
            self._last_at = time.monotonic()
            self._count(self._queue, count)
            self._listener.missed(self._queue, count)
