"""How many jobs of one queue run at a time."""

from __future__ import annotations

import math
from collections.abc import Callable


class Slots:
    """A bounded number of places for running jobs."""

    def __init__(
        self,
        total: int,
        on_free: Callable[[], None] = lambda: None,
        room: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.total = total
        self._room = room
        self.taken = 0
        self.awaited = False
        """Written by the claimer: its last look left no slot free, so it waits for one."""
        self._on_free = on_free

    def free(self) -> int:
        """How many more may start; none if their outcomes would have no room."""
        return int(min(self.total - self.taken, self._room()))

    def take(self, count: int) -> None:
        """Jobs start."""
        self.taken += count

    def release(self) -> None:
        """A job has ended."""
        self.taken -= 1
        self.offer()

    def offer(self) -> None:
        """A slot came free, or room for an outcome: whoever waits for that may look."""
        if self.awaited:
            self._on_free()
