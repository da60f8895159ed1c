"""When a worker looks for schedules that are due: anybody may fire them, and a few are enough.

The live workers have an order. The first one looks when a tick is due, the second one a moment
later, in case the first has died, the third one second later; all others leave it to their
heartbeats. The order is the same for all ticks: whoever has looked knows when the next one is due,
so whoever is first must be somebody who looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hybrid_runner.policy import ring_order

STAGGER = (0.0, 0.05, 1.0)
"""Seconds after a tick when the first workers of the order look."""
OVERDUE = 2.0
"""Seconds after which a tick is looked for by any worker whose heartbeat finds that nobody fired
it.
"""
IN_VAIN = (0.05, 1.0)
"""Seconds until the next look after one, or two in a row, that could not fire what is due: somebody
else is just firing it, perhaps. After a third, the heartbeat.
"""
_NO_RINGER = 0
"""Rings have an order for each session that rings; ticks have one."""


def place(worker_id: str, members: Iterable[str]) -> int:
    """The place of a worker in the order, whether or not it is among the members yet."""
    return ring_order.place(_NO_RINGER, worker_id, members)


def looks(position: int) -> bool:
    """Whether the worker at this place looks for each tick; the others need not know of them."""
    return position < len(STAGGER)


def pause(until_tick: float | None, position: int) -> float | None:
    """For how many seconds the worker at this place waits before it looks, if the next tick is due
    after so many; None: its heartbeat asks again.
    """
    if until_tick is None:
        return None
    if looks(position):
        return max(0.0, until_tick + STAGGER[position])
    return None if until_tick > 0 else max(0.0, until_tick + OVERDUE)


class TickTimer:
    """When one worker looks next, by a clock that is the caller's."""

    def __init__(self) -> None:
        self.looks_at: float | None = None
        """None: not before a heartbeat or a ring."""
        self._asked_at = -math.inf
        self._in_vain = 0

    def learn(self, until_tick: float | None, position: int, asked_at: float) -> None:
        """Take the answer to a question that was asked at that time; a later one's answer that came
        first is newer.

        The time counts from the question: a look that comes too early for that asks again, and the
        way of the statement that fires is as long as that of the question was.
        """
        if asked_at >= self._asked_at:
            self._asked_at = asked_at
            self._look_in(pause(until_tick, position), asked_at)

    def looked(
        self,
        until_tick: float | None,
        position: int,
        asked_at: float,
        now: float,
        *,
        has_fired: bool,
        to_come: float | None = None,
    ) -> None:
        """A look has ended, and then the next tick was asked for; if that is due already, and
        somebody may hold it, also the next one that is `to_come`.
        """
        is_due = until_tick is not None and until_tick <= 0
        self._in_vain = self._in_vain + 1 if is_due and not has_fired else 0
        if not is_due:
            self.learn(until_tick, position, asked_at)
        elif has_fired:  # there were more than one look fires
            self._look_in(0.0, now)
        else:
            tries = self._in_vain
            pauses = pause(to_come, position), *IN_VAIN[tries - 1 : tries]
            self._look_in(min((each for each in pauses if each is not None), default=None), now)

    def _look_in(self, seconds: float | None, now: float) -> None:
        self.looks_at = None if seconds is None else now + seconds
