"""Counts the rings of one queue that never arrived: what a fallback poll found is looked at again a moment later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from hybrid_runner.errors import RunnerError
from hybrid_runner.models import Claim
from hybrid_runner.policy.missed import SETTLED, Proof, Sleeper, is_suspect, missed

_MOST = 1000
"""So many of one poll are looked at; more would tell nothing new."""


class MissedRings:
    """`find` says whether the bell is open, and how many of these jobs were inserted as due."""

    def __init__(
        self,
        find: Callable[[Sequence[int]], Awaitable[tuple[bool, int]]],
        hearing: Callable[[], bool],
        soon: Callable[[Coroutine[Any, Any, None]], None],
        told: Callable[[int], None],
    ) -> None:
        self._find = find
        self._hearing = hearing
        self._soon = soon
        self._told = told
        self._rung_at: float | None = None
        self._inserts_heard = 0
        self._news = 0
        self.count = 0
        self._last_at: float | None = None

    @property
    def ago(self) -> float | None:
        """Seconds since the last one; None: there was none."""
        return None if self._last_at is None else time.monotonic() - self._last_at

    def heard(self, *, insert: bool) -> None:
        """Something about jobs came over the queue's channel."""
        self._rung_at = time.monotonic()
        self._inserts_heard += insert

    def news(self) -> int:
        """How many were counted since this was last asked."""
        news, self._news = self._news, 0
        return news

    def poll_found(self, claims: Sequence[Claim], asleep_since: float | None, *, mixed: bool, alone: bool) -> None:
        """A fallback poll came back with these."""
        if asleep_since is None:
            return
        now = time.monotonic()
        sleeper = Sleeper(now - asleep_since, None if self._rung_at is None else now - self._rung_at, mixed)
        suspects = [claim.id for claim in claims[:_MOST] if is_suspect(claim.pickup.total_seconds(), sleeper)]
        if suspects:
            self._soon(self._examine(suspects, alone=alone))

    async def _examine(self, suspects: list[int], *, alone: bool) -> None:
        inserts_heard = self._inserts_heard
        try:
            bell_open, inserted_as_due = await self._find(suspects)
        except RunnerError:
            return  # Postgres has other troubles now
        await asyncio.sleep(SETTLED)
        rung = self._inserts_heard > inserts_heard
        count = missed(Proof(inserted_as_due, bell_open=bell_open, alone=alone, rung=rung, hearing=self._hearing()))
        if count:
            self.count += count
            self._news += count
            self._last_at = time.monotonic()
            self._told(count)
