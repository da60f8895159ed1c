"""Finds jobs that were put in lately. Inserts do not say that they happen: they would wait for each other to say it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from hybrid_runner.models import Standing
from hybrid_runner.storage import standings
from hybrid_runner.storage.connections import Fetches
from hybrid_runner.web.reader import Wish

MARGIN = 2.0
"""Seconds from an insert to its commit within which it is found here; what takes longer shows once it is claimed."""
MOST = 100
"""New jobs that one look reads, the newest; more come only faster than anybody reads."""
_DEEPEST = 5000


class Newcomers:
    """Looks behind the newest id of two seconds ago; who has been seen is known to the caller."""

    def __init__(self) -> None:
        self.wanted: Sequence[Wish] = ()
        """Written by the stream."""
        self._ids: deque[tuple[float, int]] = deque()

    async def see(self, on: Fetches) -> list[Standing]:
        """The newest that somebody wants."""
        now = time.monotonic()
        while len(self._ids) > 1 and self._ids[1][0] < now - MARGIN:
            self._ids.popleft()
        behind = self._ids[0][1] if self._ids else 2**62  # the first look only learns where we are
        queues, kinds = _names([wish.queue for wish in self.wanted]), _names([wish.kind for wish in self.wanted])
        newest = await standings.see_new_jobs(on, behind, queues, kinds, MOST, _DEEPEST)
        self._ids.append((now, newest.id))
        return newest.standings


def _names(names: Sequence[str | None]) -> list[str] | None:
    """None: somebody wants all."""
    wanted = [name for name in names if name is not None]
    return None if len(wanted) < len(names) else wanted
