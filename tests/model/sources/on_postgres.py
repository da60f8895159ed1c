"""The same interleavings in Postgres: real sessions, production's statements, every order of them.

An actor is a list of steps that one session takes one after the other. A step that waits for
another session is left waiting, and the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import asyncpg
import orjson

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import read_row
from tests.support.waiting import until

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
Step = Callable[[Connection, "Play"], Awaitable[object]]


@dataclass
class Play:
    """What one order of steps has to do with: some rows, and what a worker knows of their jobs."""

    source: int
    rows: list[int]
    claims: dict[int, Claim] = field(default_factory=dict)
    """What the worker runs, by the row."""
    read: dict[int, str | None] = field(default_factory=dict)
    """What its handlers were given; None: the row was not wanted."""
    retried: list[int] = field(default_factory=list)
    """Jobs that somebody runs again by their numbers."""
    errors: list[Exception] = field(default_factory=list)


def orders(lengths: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Every order of so many steps of each actor."""
    if not any(lengths.values()):
        yield ()
    for actor, left in lengths.items():
        if left:
            for rest in orders({**lengths, actor: left - 1}):
                yield (actor, *rest)


class Actor:
    """One session, which takes its steps one after the other."""

    def __init__(self, connection: Connection, pid: int) -> None:
        self.connection, self.pid = connection, pid
        self._last: asyncio.Task[None] | None = None

    def take(self, step: Step, play: Play) -> None:
        """As soon as its last step is done."""
        self._last = asyncio.create_task(self._after(self._last, step, play))

    async def _after(self, last: asyncio.Task[None] | None, step: Step, play: Play) -> None:
        if last is not None:
            await last
        try:
            await step(self.connection, play)
        except Exception as error:  # it is what the test is about
            play.errors.append(error)

    @property
    def is_done(self) -> bool:
        return self._last is None or self._last.done()

    async def end(self) -> None:
        if self._last is not None:
            await self._last
        await self.connection.execute("ROLLBACK")


class Stage:
    """The sessions, and who watches them."""

    def __init__(self, watcher: Connection, actors: Mapping[str, Actor], source: int) -> None:
        self._watcher, self._actors, self._source = watcher, actors, source

    @classmethod
    async def of(
        cls, source: int, names: Sequence[str], opened: Callable[[], Awaitable[Connection]]
    ) -> Stage:
        actors = {}
        for name in names:
            connection = await opened()
            # Of those who wait in a circle it is the application that is told, and soon.
            patience = "50ms" if name == "application" else "20s"
            await connection.execute(f"SET deadlock_timeout = '{patience}'")
            pid = await connection.fetchval("SELECT pg_backend_pid()")
            actors[name] = Actor(connection, pid)
        return cls(await opened(), actors, source)

    async def begun(self, rows: int) -> Play:
        """New rows, which are wanted."""
        found = await self._watcher.fetch(
            "INSERT INTO public.audits (website_url) SELECT 'new' FROM generate_series(1, $1)"
            " RETURNING id",
            rows,
        )
        return Play(self._source, sorted(row["id"] for row in found))

    async def play(
        self, play: Play, scripts: Mapping[str, Sequence[Step]], order: Sequence[str]
    ) -> None:
        """Take the steps in this order, as far as nobody has to wait."""
        left = {name: iter(steps) for name, steps in scripts.items()}
        for name in order:
            await self.take(name, next(left[name]), play)
        for name in scripts:
            await self._actors[name].end()

    async def take(self, name: str, step: Step, play: Play) -> None:
        """Until it is done, or waits for another; and so is whoever has waited for it."""
        self._actors[name].take(step, play)
        # Once more, since whoever has ended may have let one go on that was looked at before.
        for actor in [self._actors[name], *self._actors.values(), *self._actors.values()]:
            await until(partial(self._is_done_or_waits, actor))

    async def _is_done_or_waits(self, actor: Actor) -> bool:
        return actor.is_done or await self._waits(actor)

    async def _waits(self, actor: Actor) -> bool:
        return not actor.is_done and bool(
            await self._watcher.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", actor.pid)
        )

    # --- what a worker does

    async def rest(self, play: Play) -> None:
        """Workers go on until nothing is left to do."""
        on = self._watcher

        async def rested() -> bool:
            await finish(on, play)
            await row_calls.apply_row_changes(on, play.source, 0, 1000)
            keys = [str(row) for row in play.rows]
            late = await on.fetch("SELECT row_key FROM hybrid_runner.late_rows")
            await row_calls.write_late_rows(on, play.source, [row["row_key"] for row in late])
            await claim(on, play)
            await show(on, play)
            left = await on.fetchval(
                "SELECT (SELECT count(*) FROM hybrid_runner.jobs WHERE row_key = ANY ($1))"
                " + (SELECT count(*) FROM hybrid_runner.late_rows)"
                " + (SELECT count(*) FROM hybrid_runner.row_changes)",
                keys,
            )
            return not left

        await until(rested)


async def begin(on: Connection, _: Play) -> None:
    await on.execute("BEGIN")


async def commit(on: Connection, _: Play) -> None:
    await on.execute("COMMIT")


async def roll_back(on: Connection, _: Play) -> None:
    await on.execute("ROLLBACK")


async def claim(on: Connection, play: Play) -> None:
    """What is due."""
    number = await on.fetchval("SELECT nextval('hybrid_runner.claims')")
    claimed = await claim_calls.claim_jobs(on, "default", KINDS, 1000, "worker-1", number)
    play.claims.update({int(claim.row_key or 0): claim for claim in claimed.claims})


async def retry(on: Connection, play: Play) -> None:
    await on.fetch("SELECT hybrid_runner.retry(id) FROM unnest($1::int8[]) AS id", play.retried)


async def show(on: Connection, play: Play) -> None:
    """What is claimed and was not shown yet."""
    unshown = {c.id: row for row, c in play.claims.items() if row not in play.read}
    if not unshown:
        return
    claims = [(play.claims[row].id, play.claims[row].number) for row in unshown.values()]
    for job_id, shown in (await source_calls.show_claims(on, claims)).items():
        if shown.outcome in ("unwanted", "gone"):
            play.read[unshown[job_id]] = None
        elif shown.outcome != "held":
            row = unshown[job_id]
            payload = await read_row(on, play.claims[row])
            play.read[row] = orjson.loads(payload or "")["website_url"]


async def finish(on: Connection, play: Play) -> None:
    """What was shown: the result is what the handler was given."""
    ends = []
    for row, given in play.read.items():
        claim = play.claims[row]
        told = await on.fetchval(
            "SELECT cancel_requested_at IS NOT NULL FROM hybrid_runner.jobs WHERE id = $1", claim.id
        )
        result = orjson.dumps(given).decode()
        if given is None or told:
            ends.append(Finished(claim, State.CANCELLED, result=result))
        else:
            ends.append(Finished(claim, State.COMPLETED, result=result))
    for row in play.read:
        del play.claims[row]
    play.read.clear()
    if ends:
        await claim_calls.finish_jobs(on, ends)


async def write_late(on: Connection, play: Play) -> None:
    await row_calls.write_late_rows(on, play.source, [str(row) for row in play.rows])


async def apply_changes(on: Connection, play: Play) -> None:
    await row_calls.apply_row_changes(on, play.source, 0, 1000)


def edit(sql: str, place: int = 0) -> Step:
    """A statement of the application, about the row `$1`."""

    async def step(on: Connection, play: Play) -> None:
        await on.execute(sql, play.rows[place])

    return step


def is_circle(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, asyncpg.DeadlockDetectedError):
            return True
        error = error.__cause__
    return False
