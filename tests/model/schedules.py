"""Interleavings of those who fire a schedule, end its job and change it: real sessions, the
functions of production, every order of their steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hybrid_runner.storage.connections.connection import Connection
from tests.model.sources.on_postgres import Actor, Play, Step, begin, commit, roll_back
from tests.support.tick_clock import HOUR, NOON, Schedules
from tests.support.waiting import until

FIRE = "SELECT * FROM hybrid_runner.fire_schedules()"


@dataclass
class Seen:
    """What came of one order."""

    live: int = 0
    """The most jobs that lived at a time."""
    waiting: bool = False
    """An actor had to wait for another to end a job."""
    is_stranded: bool = False
    """A tick waited for no job, and nobody was told."""
    ticks: list[Any] = field(default_factory=list)
    """Of all jobs, in the end."""
    row: Any = None
    errors: list[Exception] = field(default_factory=list)

    def faults(self, overlap: str) -> set[str]:
        """Laws that were broken."""
        row = self.row
        counted = row["fired"] + row["caught_up"]
        found = {
            "two at a time": overlap != "allow" and self.live > 1,
            "a tick has two jobs": len({*self.ticks}) < len(self.ticks),
            "counted and not stored, or stored and not counted": counted
            != sum(tick is not None for tick in self.ticks),
            "a tick is lost": row["paused_at"] is None
            and row["version"] == 1
            and counted + row["skipped"] + row["dropped"] != 2,
            "a tick waits for nothing": row["waiting_ticks"] is not None,
            "nobody was told": self.is_stranded,
            # As for anybody who cancels it: for a statement of whoever replaces it.
            "an end had to wait": self.waiting and overlap != "replace",
            "an error": bool(self.errors),
        }
        return {what for what, is_so in found.items() if is_so}


class Theatre:
    """The sessions. Each order has a schedule of its own with two ticks: the job of the first one
    runs, and the second one is due.
    """

    def __init__(self, schedules: Schedules, actors: Mapping[str, Actor]) -> None:
        self._schedules, self._actors = schedules, actors
        self._number = 0
        self._rung = 0

    @classmethod
    async def of(
        cls, schedules: Schedules, names: Sequence[str], opened: Callable[[], Awaitable[Connection]]
    ) -> Theatre:
        actors = {}
        for name in names:
            connection = await opened()
            pid = await connection.fetchval("SELECT pg_backend_pid()")
            actors[name] = Actor(connection, pid)
        theatre = cls(schedules, actors)
        await schedules.connection.add_listener("hybrid_runner.~ticks", theatre._hear)
        return theatre

    def _hear(self, *_: object) -> None:
        self._rung += 1

    async def play(
        self, overlap: str, scripts: Mapping[str, Sequence[Step]], order: Sequence[str]
    ) -> Seen:
        """Take the steps in this order, then let a fleet go on until nothing is left."""
        self._number += 1
        name = f"s{self._number}"
        on = self._schedules
        await on.at(NOON)
        await on.store(name, every=HOUR, overlap=overlap, ends_at=NOON + 2 * HOUR)
        await on.fire(NOON + HOUR)
        job = await on.run(name)
        await on.at(NOON + 2 * HOUR)
        self._rung = 0
        play = Play(job, [])
        for session in self._actors.values():
            await session.connection.execute("SELECT set_config('test.name', $1, false)", name)
        left = {actor: iter(steps) for actor, steps in scripts.items()}
        seen = Seen()
        for actor in order:
            await self._take(actor, next(left[actor]), play, seen)
            seen.live = max(seen.live, len(await on.ticks(name)))
        for actor in scripts:
            await self._actors[actor].end()
        seen.errors = play.errors
        row = await on.row(name)
        seen.is_stranded = (
            row["waiting_ticks"] is not None and not await on.ticks(name) and not self._rung
        )
        await self._rest(name, seen)
        return seen

    async def _take(self, name: str, step: Step, play: Play, seen: Seen) -> None:
        self._actors[name].take(step, play)
        for actor in [self._actors[name], *self._actors.values(), *self._actors.values()]:
            await until(partial(self._is_done_or_waits, actor))
        if name == "end" and not self._actors[name].is_done:
            seen.waiting = True

    async def _is_done_or_waits(self, actor: Actor) -> bool:
        return actor.is_done or bool(
            await self._schedules.connection.fetchval(
                "SELECT cardinality(pg_blocking_pids($1)) > 0", actor.pid
            )
        )

    async def _rest(self, name: str, seen: Seen) -> None:
        on = self._schedules
        await on.connection.execute("SELECT hybrid_runner.resume_schedule($1)", name)
        for _ in range(6):
            await on.fire()
            seen.live = max(seen.live, len(await on.ticks(name)))
            while await on.ticks(name):
                await on.end(await on.run(name))
        seen.row = await on.row(name)
        rows = await on.connection.fetch(
            "SELECT tick FROM hybrid_runner.archive WHERE schedule = $1", name
        )
        seen.ticks = [row["tick"] for row in rows]


def _statement(sql: str) -> Step:
    async def step(on: Connection, play: Play) -> None:
        await on.fetch(sql)

    return step


def both(*steps: Step) -> Step:
    """One after the other, as one step."""

    async def step(on: Connection, play: Play) -> None:
        for one in steps:
            await one(on, play)

    return step


async def _end(on: Connection, play: Play) -> None:
    await on.fetch(
        "SELECT hybrid_runner.end_jobs(ARRAY[$1::int8], ARRAY[$1::int8], NULL, NULL, NULL)",
        play.source,
    )


def _of_it(call: str) -> Step:
    return _statement(call.format("current_setting('test.name')"))


FIRING = (both(begin, _statement(FIRE)), commit)
KILLED = (both(begin, _statement(FIRE)), roll_back)
ENDING = (both(begin, _end), commit)
CUT_OFF = (both(begin, _end), roll_back)
PAUSING = (both(begin, _of_it("SELECT hybrid_runner.pause_schedule({})")), commit)
CHANGING = (
    both(
        begin,
        _of_it("UPDATE hybrid_runner.schedules SET priority = 3 WHERE name = {}"),
    ),
    commit,
)
BY_HAND = (both(begin, _of_it("SELECT hybrid_runner.run_now({})")), commit)
