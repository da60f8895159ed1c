"""Counts what became of a worker's jobs: for its status, and for those who wait for ends."""

from __future__ import annotations

import asyncio
from collections import Counter

from hybrid_runner.model.events import BatchSettled, Observer
from hybrid_runner.model.settlements import word_of


class JobCounts(Observer):
    """Counts by final state, and for jobs that were put back by the reason."""

    def __init__(self) -> None:
        self.settled: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def ended(self) -> int:
        """Jobs that have ended here, in whatever state."""
        return self.settled["completed"] + self.settled["failed"] + self.settled["cancelled"]

    async def until_ended(self, count: int) -> None:
        """Wait until so many jobs have ended here."""
        while self.ended() < count:
            self._changed.clear()
            await self._changed.wait()

    def on_settled(self, batch: BatchSettled) -> None:
        self.settled.update(map(word_of, batch.settled))
        self._changed.set()
