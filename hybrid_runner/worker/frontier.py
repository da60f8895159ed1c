"""How far one worker has looked in each lane of a queue, so that it need not walk again over what is gone."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.models import Taken
from hybrid_runner.storage.statements import WHOLE_LANES, Lanes

LANES = 10


class Frontier:
    """Looks start behind it; only what claimed jobs and empty lanes prove moves it, never past `margin` before the look.

    The margin covers transactions that commit late with an earlier run_at; what is older is found by the next sweep.
    """

    def __init__(self, margin: timedelta) -> None:
        self._margin = margin
        self._run_ats, self._ids = list(WHOLE_LANES[0]), list(WHOLE_LANES[1])

    def lanes(self, *, sweep: bool) -> Lanes:
        """Where the next look starts."""
        return WHOLE_LANES if sweep else (self._run_ats, self._ids)

    def moved_by(self, taken: Taken, asked: int) -> None:
        """Lanes before the last one that gave a job are empty, all are if fewer came than asked for. A sweep moves it back too."""
        if taken.at is None:
            return
        limit = taken.at - self._margin
        if len(taken.claims) < asked:
            self._run_ats, self._ids = [limit] * LANES, [0] * LANES
            return
        last = taken.claims[-1]
        for lane in range(last.priority):
            self._run_ats[lane], self._ids[lane] = limit, 0
        self._run_ats[last.priority], self._ids[last.priority] = min((last.run_at, last.id), (limit, 0))
