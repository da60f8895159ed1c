"""What became of this worker's jobs, counted."""

from __future__ import annotations

import asyncio
from collections import Counter

from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.outcomes import word_of


class Tally:
    """Counts by final state, and by why jobs were put back."""

    def __init__(self) -> None:
        self.settled: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def ended(self) -> int:
        """Jobs that have ended here, in whatever state."""
        return self.settled["completed"] + self.settled["failed"] + self.settled["cancelled"]

    async def reached(self, count: int) -> None:
        """Wait until so many jobs have ended here."""
        while self.ended() < count:
            self._changed.clear()
            await self._changed.wait()

    def wrote(self, writing: BatchSettled) -> None:
        """Postgres has them."""
        self.settled.update(map(word_of, writing.settled))
        self._changed.set()
