"""Workers that speak, fall silent and judge each other by the statements that run in production, on
a clock that jumps from one event to the next.

What a lock or an outage does to a statement is played here: how long it waits, when it gives up,
when it is tried again, always at the worst moment. A lock on rows is a real one.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Literal, NamedTuple

from hybrid_runner.model.news import LookAgain, WorkerDied
from hybrid_runner.storage import heartbeat_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.storage.queries import query
from hybrid_runner.worker.liveness.fleet import Fleet
from hybrid_runner.worker.liveness.heartbeat import AFTER_WAITING

LEASE = 30.0
START = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = "current_setting('test.now')::timestamptz"
LOCK_TIMEOUT = 4.0
"""Seconds that a heartbeat waits for a lock: see `for_heartbeat`."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 10.0)
"""Seconds until the next try while Postgres cannot be reached."""

Obstacle = Literal["table locked", "jobs locked", "rows locked", "cut off"]


class Trouble(NamedTuple):
    """Something keeps some workers from speaking, or all."""

    what: Obstacle
    begins: float
    ends: float
    whom: frozenset[str]

    def holds(self, worker: str, at: float, *obstacles: Obstacle) -> bool:
        return (
            self.what in obstacles
            and self.begins <= at < self.ends
            and (self.what != "rows locked" or worker in self.whom)
            and (self.what != "cut off" or worker in self.whom)
        )


@dataclass(frozen=True)
class Story:
    """What happens. Times are seconds."""

    starts: Mapping[str, float]
    """When each worker comes; those before zero have been there for long."""
    ends: float
    troubles: Sequence[Trouble] = ()
    kills: Mapping[str, float] = field(default_factory=dict)
    clock_steps: Mapping[float, float] = field(default_factory=dict)
    """By how many seconds the server's clock is set, and when."""
    pauses: Mapping[str, float] = field(default_factory=dict)
    """Seconds between two heartbeats of a worker, three of which are its lease; else ten."""


@dataclass(frozen=True)
class Rules:
    """What the statements and the worker must keep; tests drop them one at a time."""

    replaced: tuple[tuple[str, str, str], ...] = ()
    """A query, a part of it, and what stands there instead."""
    after_waiting: float = AFTER_WAITING


class Seen(NamedTuple):
    """What became of it."""

    wronged: list[str]
    """Workers that were declared dead while they lived."""
    declared: dict[str, float]
    """When each dead worker was."""


@dataclass
class Member:
    """One worker's process."""

    name: str
    pause: float
    fleet: Fleet
    first_claim: int = 0
    failures: int = 0


class Membership:
    """Plays one story."""

    def __init__(
        self, connection: Connection, locker: Connection, story: Story, rules: Rules
    ) -> None:
        self._connection, self._locker = connection, locker
        self._story, self._rules = story, rules
        self._order = count()
        self._todo: list[tuple[float, int, str, str]] = []
        self._members: dict[str, Member] = {}
        self._offset = 0.0
        self.seen = Seen([], {})

    async def play(self) -> Seen:
        """Run to the end of the story."""
        story = self._story
        for name, at in story.starts.items():
            self._plan(at, "start", name)
        for name, at in story.kills.items():
            self._plan(at, "kill", name)
        for at in story.clock_steps:
            self._plan(at, "clock", "")
        for trouble in story.troubles:
            if trouble.what == "rows locked":
                self._plan(trouble.begins, "lock", ",".join(trouble.whom))
                self._plan(trouble.ends, "unlock", "")
        while self._todo and (event := heapq.heappop(self._todo))[0] <= story.ends:
            at, _, what, whom = event
            await self._happens(at, what, whom)
        await self._locker.execute("ROLLBACK")
        return self.seen

    def _plan(self, at: float, what: str, whom: str) -> None:
        heapq.heappush(self._todo, (at, next(self._order), what, whom))

    async def _happens(self, at: float, what: str, whom: str) -> None:
        match what:
            case "start":
                await self._start(at, whom)
            case "kill":
                self._members.pop(whom, None)
            case "clock":
                self._offset += self._story.clock_steps[at]
            case "lock":
                await self._locker.execute("BEGIN")
                await self._locker.execute(
                    "SELECT FROM hybrid_runner.workers WHERE id = ANY ($1) FOR UPDATE",
                    whom.split(","),
                )
            case "unlock":
                await self._locker.execute("ROLLBACK")
            case "try" if whom in self._members:
                self._try(at, self._members[whom])
            case "speak" if whom in self._members:
                await self._speak(at, self._members[whom])

    def _until(self, worker: str, at: float, *obstacles: Obstacle) -> float:
        """When this worker's way is free."""
        held = [t.ends for t in self._story.troubles if t.holds(worker, at, *obstacles)]
        return max(held, default=at)

    async def _start(self, at: float, name: str) -> None:
        if (free := self._until(name, at, "table locked", "cut off")) > at:
            self._plan(free, "start", name)
            return
        pause = self._story.pauses.get(name, LEASE / 3)
        lease = timedelta(seconds=3 * pause)
        member = Member(name, pause, Fleet(["default"], lease))
        await self._set_clock(at)
        registered = await worker_calls.register_worker(
            self, name, "host", 1, "0", '{"default": 1}', lease
        )
        member.first_claim = registered.first_claim
        await self._connection.execute(  # the column's default reads the real clock
            f"UPDATE hybrid_runner.workers SET heartbeat_at = {CLOCK} WHERE id = $1", name
        )
        self._members[name] = member
        self._plan(at, "speak", name)

    def _try(self, at: float, member: Member) -> None:
        """A lock is waited for, at last in vain; an outage is noticed at once."""
        if self._until(member.name, at, "cut off") > at:
            pause = PAUSES[min(member.failures, len(PAUSES) - 1)]
            member.failures += 1
            self._plan(at + min(pause, member.pause), "try", member.name)
            return
        free = self._until(member.name, at, "table locked", "rows locked")
        if free > at + LOCK_TIMEOUT:
            again = at + LOCK_TIMEOUT + self._rules.after_waiting
            self._plan(again, "try", member.name)
        else:
            self._plan(free, "speak", member.name)

    async def _speak(self, at: float, member: Member) -> None:
        member.failures = 0
        await self._set_clock(at)
        lives = await heartbeat_calls.beat(
            self, member.name, member.first_claim, longest_gap=member.fleet.longest_gap
        )
        if not lives:
            self.seen.wronged.append(member.name)
            del self._members[member.name]
            return
        member.fleet.spoke()
        again = member.pause
        if self._until(member.name, at, "jobs locked") == at:
            again = min(again, await self._ask(at, member))
        self._plan(at + max(0.2, again), "try", member.name)

    async def _ask(self, at: float, member: Member) -> float:
        news = await heartbeat_calls.ask_news(
            self, member.name, member.first_claim, shortest_lease=member.fleet.shortest_lease
        )
        member.fleet.seen(news)
        for one in news:
            if isinstance(one, WorkerDied):
                self.seen.declared.setdefault(one.worker_id, at)
                if one.worker_id in self._members:
                    self.seen.wronged.append(one.worker_id)
        pauses = [one.after.total_seconds() for one in news if isinstance(one, LookAgain)]
        return min([*pauses, member.fleet.longest_pause or member.pause])

    async def _set_clock(self, at: float) -> None:
        now = START + timedelta(seconds=at + self._offset)
        await self._connection.execute("SELECT set_config('test.now', $1, false)", now.isoformat())

    async def fetch(self, statement: str, /, *arguments: Any) -> Rows:
        """Run a production statement on the clock of the story."""
        asked = statement
        for name, part, instead in self._rules.replaced:
            if asked == query(name):
                assert part in statement, part
                statement = statement.replace(part, instead)
        statement = statement.replace("clock_timestamp()", CLOCK)
        statement = statement.replace("pg_postmaster_start_time()", "timestamptz '2020-01-01'")
        return await self._connection.fetch(statement, *arguments)
