"""How many jobs of one queue run at a time."""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """A bounded number of places; `freed` is told of each one that comes free."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.taken = 0
        self.freed: Callable[[], None] = lambda: None

    def free(self) -> int:
        """How many more may start."""
        return self.total - self.taken

    def take(self, count: int) -> None:
        """Jobs start."""
        self.taken += count

    def release(self) -> None:
        """A job has ended."""
        self.taken -= 1
        self.freed()
