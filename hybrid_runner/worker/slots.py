"""How many jobs of one queue run at a time."""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """A bounded number of places for running jobs."""

    def __init__(self, total: int, on_free: Callable[[], None] = lambda: None) -> None:
        self.total = total
        self.taken = 0
        self.awaited = False
        """Written by the claimer: its last look left no slot free, so it waits for one."""
        self._on_free = on_free

    def free(self) -> int:
        """How many more may start."""
        return self.total - self.taken

    def take(self, count: int) -> None:
        """Jobs start."""
        self.taken += count

    def release(self) -> None:
        """A job has ended."""
        self.taken -= 1
        self.offer()

    def offer(self) -> None:
        """Whoever waits for a slot may look whether it can have one."""
        if self.awaited:
            self._on_free()
