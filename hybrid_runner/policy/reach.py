"""How far back looks read again what an earlier look has passed, so that jobs which become visible
late are found: their transaction took its time, or a synchronous standby did.

A look costs what it walks over: while vacuum is held up, that is an entry for each job that was
claimed in that time. So the reach is long while few jobs come, and short while many do.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import NamedTuple

FURTHEST = timedelta(seconds=5)
"""Sweeps find what comes later than that."""

FEW = 1000
"""So many jobs are walked over again in a fraction of a millisecond."""

APART = timedelta(milliseconds=50)
"""Between two marks; one of each look would be more than is needed."""


class Mark(NamedTuple):
    """What was known at the time of a look."""

    at: datetime
    newest_id: int
    """Of all jobs that were found until then: ids say how many were inserted since, whoever claimed
    them.
    """
    claimed: int
    """How many were claimed here until then: put back, a job keeps its id."""


class Reach:
    """Of the looks of one worker at one queue."""

    def __init__(self, shortest: timedelta) -> None:
        self._shortest = shortest
        self._newest_id = self._claimed = 0
        self._marks = deque[Mark]()

    def found(self, count: int, newest_id: int, at: datetime) -> None:
        """A look at that time found so many jobs."""
        self._claimed += count
        self._newest_id = max(self._newest_id, newest_id)
        marks = self._marks
        if not marks or at - marks[-1].at >= APART:
            marks.append(Mark(at, self._newest_id, self._claimed))

    def back_to(self, at: datetime) -> datetime:
        """Where to look again after a look at that time: few jobs were inserted since."""
        marks, furthest = self._marks, at - FURTHEST
        while len(marks) > 1 and (self._passes_many(marks[0]) or marks[1].at <= furthest):
            marks.popleft()
        back_to = max(furthest, marks[0].at) if marks else furthest
        return min(back_to, at - self._shortest)

    def _passes_many(self, mark: Mark) -> bool:
        return max(self._newest_id - mark.newest_id, self._claimed - mark.claimed) > FEW
