"""How many jobs of one queue run at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

from hybrid_runner.worker.queue.claimable import Claimable


class Slots:
    """`total` slots, of which some are taken. `room` says how many more jobs may be claimed,
    whatever slots are free.
    """

    def __init__(
        self,
        total: int,
        on_free: Callable[[], None] = lambda: None,
        room: Callable[[], float] = lambda: math.inf,
        claimable: Claimable | None = None,
    ) -> None:
        self.total = total
        self._room = room
        self._claimable = claimable
        self.taken = 0
        self.awaited = False
        """Written by the claimer: true while it waits for a free slot."""
        self._on_free = on_free

    def free(self) -> int:
        """How many more jobs may start; none if their outcomes would have no room."""
        free = min(self.total - self.taken, self._room())
        return int(free if self._claimable is None else min(free, self._claimable.most()))

    def is_short(self) -> bool:
        """Whether looks may leave due jobs to other workers, for lack of threads or processes."""
        return self._claimable is not None and self._claimable.is_short

    def take(self, count: int) -> None:
        self.taken += count

    def release(self) -> None:
        self.taken -= 1
        self.offer()

    def offer(self) -> None:
        """Call `on_free` if the claimer waits: a slot or room for an outcome came free."""
        if self.awaited:
            self._on_free()
