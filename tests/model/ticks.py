"""Workers whose timers, heartbeats and rings decide who fires schedules, on a clock that jumps from
one event to the next. What they decide by is the code that runs in production.

Postgres is played: the ticks that are due, and what a worker that asks is told. That one tick
makes one job is a matter of its transactions, and is tested on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import NamedTuple

from hybrid_runner.policy import tick_order
from hybrid_runner.policy.tick_order import TickTimer

HEARTBEAT = 10.0
LEASE = 30.0


class Change(NamedTuple):
    """Somebody changes the schedule: from then on there is another tick."""

    at: float
    tick: float
    lost_by: frozenset[str] = frozenset()
    """Workers that do not hear the ring."""


class Held(NamedTuple):
    """Somebody holds the schedule's row: nobody can fire it."""

    begins: float
    ends: float


@dataclass(frozen=True)
class Story:
    """What happens. Times are seconds."""

    workers: Sequence[str]
    ticks: Sequence[float]
    ends: float
    comes: Mapping[str, float] = field(default_factory=dict)
    """When workers come; the others have been there for long."""
    dies: Mapping[str, float] = field(default_factory=dict)
    changes: Sequence[Change] = ()
    held: Sequence[Held] = ()
    late_timers: Mapping[str, float] = field(default_factory=dict)
    """By how many seconds a worker's timer goes off late; below 0: early."""
    slow_answers: Mapping[str, float] = field(default_factory=dict)
    """Seconds until a worker has the answers of its heartbeats."""
    seed: int = 0


class Seen(NamedTuple):
    """What became of it."""

    fired: dict[float, float]
    """When each tick was."""
    looks: list[tuple[float, str]]

    def late(self, tick: float) -> float:
        """By how many seconds."""
        return self.fired[tick] - tick


@dataclass
class Member:
    """One worker's process."""

    name: str
    timer: TickTimer = field(default_factory=TickTimer)
    members: frozenset[str] = frozenset()
    spoke_at: float = 0.0
    alarm: int = 0
    """The number of the alarm that counts."""

    def place(self) -> int:
        return tick_order.place(self.name, self.members)


class Ticking:
    """Plays one story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._chance = Random(story.seed)
        self._order = count()
        self._todo: list[tuple[float, int, str, tuple[object, ...]]] = []
        self._members: dict[str, Member] = {}
        self._gone: dict[str, Member] = {}
        self._ticks = sorted(story.ticks)
        self.seen = Seen({}, [])

    def play(self) -> Seen:
        """Run to the end of the story."""
        for name in self._story.workers:
            comes = self._story.comes.get(name, -20.0 + 10 * self._chance.random())
            self._plan(comes, "come", name)
        for name, at in self._story.dies.items():
            self._plan(at, "die", name)
        for change in self._story.changes:
            self._plan(change.at, "change", change)
        while self._todo and self._todo[0][0] <= self._story.ends:
            at, _, what, about = heapq.heappop(self._todo)
            getattr(self, f"_{what}")(at, *about)
        return self.seen

    def _plan(self, at: float, what: str, *about: object) -> None:
        heapq.heappush(self._todo, (at, next(self._order), what, about))

    # --- what happens to workers

    def _come(self, at: float, name: str) -> None:
        self._members[name] = Member(name)
        self._plan(at, "beat", name)

    def _die(self, _at: float, name: str) -> None:
        self._gone[name] = self._members.pop(name)

    def _change(self, at: float, change: Change) -> None:
        self._ticks = sorted([*self._ticks, change.tick])
        for name in self._members:
            if name not in change.lost_by:
                self._plan(at + 0.001, "ring", name)

    # --- what a worker does

    def _beat(self, at: float, name: str) -> None:
        if (member := self._members.get(name)) is None:
            return
        member.spoke_at = at
        known = {**self._gone, **self._members}
        members = frozenset(other.name for other in known.values() if at - other.spoke_at < LEASE)
        answered = at + self._story.slow_answers.get(name, 0.002)
        self._plan(answered, "learn", name, self._until(at), members, at)
        self._plan(at + HEARTBEAT * (0.95 + 0.1 * self._chance.random()), "beat", name)

    def _learn(
        self, at: float, name: str, until: float | None, members: frozenset[str], asked_at: float
    ) -> None:
        if (member := self._members.get(name)) is not None:
            member.members = members
            member.timer.learn(until, member.place(), asked_at)
            self._set_alarm(at, member)

    def _ring(self, at: float, name: str) -> None:
        member = self._members.get(name)
        if member is not None and tick_order.looks(member.place()):
            self._plan(at + 0.002, "learn", name, self._until(at), member.members, at)

    def _alarm(self, at: float, name: str, number: int) -> None:
        member = self._members.get(name)
        if member is None or member.alarm != number:
            return
        self.seen.looks.append((at, name))
        fires = self._fire(at)
        member.timer.looked(self._until(at), member.place(), at, at + 0.001, has_fired=fires)
        self._set_alarm(at + 0.001, member)

    def _set_alarm(self, at: float, member: Member) -> None:
        member.alarm += 1
        if member.timer.looks_at is not None:
            late = self._story.late_timers.get(member.name, 0.0)
            goes_off = max(at, member.timer.looks_at + late)
            self._plan(goes_off, "alarm", member.name, member.alarm)

    # --- what Postgres does

    def _until(self, at: float) -> float | None:
        return self._ticks[0] - at if self._ticks else None

    def _fire(self, at: float) -> bool:
        if any(held.begins <= at < held.ends for held in self._story.held):
            return False
        due = [tick for tick in self._ticks if tick <= at]
        self.seen.fired.update(dict.fromkeys(due, at))
        self._ticks = self._ticks[len(due) :]
        return bool(due)
