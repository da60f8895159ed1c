"""Looks behind a frontier: what they find, and in which order.

The law of a look: it passes over a due job only if that came late, which is to say that it was
committed after the same claimer had looked at a time more than the margin past the job's run_at.
Sweeps pass over nothing. "Passed over" is what was due, is not claimed, and comes before the last
that was; or, when fewer came than were asked for, whatever is left.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.model.claims import Claim, ClaimResult
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.claim_calls import Lanes
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS
from hybrid_runner.worker.queue.claims import Frontier
from tests.support.jobs import KINDS, NUMBERS, enqueue, living

Another = Callable[[], Awaitable[Connection]]
Place = tuple[int, datetime, int]
"""Where a job stands: priority, run_at, id."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
MARGIN = timedelta(milliseconds=15)
STEPS = 600
EVERYTHING = 100_000
QUEUED = "SELECT priority, run_at, id FROM hybrid_runner.jobs WHERE state = 'queued'"
CLOCK = "SELECT clock_timestamp()"


@dataclass(eq=False)
class Claimer:
    """One worker's way of claiming."""

    name: str
    connection: Connection
    frontier: Frontier
    limit: datetime = LONG_AGO
    """The margin before its latest look."""
    holds: dict[int, Claim] = field(default_factory=dict)


@dataclass
class Machine:
    """A queue to which chance does everything that can be done to one, while two claimers look at
    it.
    """

    database: Connection
    claimers: tuple[Claimer, ...]
    another: Another
    chance: random.Random
    passable: dict[Place, set[str]] = field(default_factory=dict)
    """Who may pass over the job at this place: to them it came late."""
    ended: list[int] = field(default_factory=list)
    open: list[tuple[Connection, Any]] = field(default_factory=list)
    found: int = 0
    passed_over: int = 0
    came_late: int = 0

    async def run(self, *, sweeps: bool) -> None:
        """Many steps, then what must be so at the end."""
        steps: list[Callable[[], Awaitable[None]]] = [
            self.insert_now,
            self.insert_now,
            self.insert_now,
            self.insert_for_the_past,
            self.insert_for_soon,
            self.begin_insert,
            self.commit_insert,
            self.commit_insert,
            self.look,
            self.look,
            self.look,
            self.look_both,
            self.finish,
            self.put_back,
            self.put_back,
            self.release,
            self.cancel,
            self.retry,
            self.retry_finished,
            self.amend,
        ]
        for _ in range(STEPS):
            await self.chance.choice([*steps, self.sweep] if sweeps else steps)()
        while self.open:
            await self.commit_insert()
        for claimer in self.claimers:
            await self.claim(claimer, EVERYTHING, sweep=False)
        last = await self.claim(self.claimers[0], EVERYTHING, sweep=True)
        assert last.looked_at is not None
        left = [place for place in await self.queued() if place[1] <= last.looked_at]
        assert left == []

    # --- looking

    async def look(self) -> None:
        await self.claim(self.chance.choice(self.claimers), self.slots(), sweep=False)

    async def sweep(self) -> None:
        await self.claim(self.chance.choice(self.claimers), self.slots(), sweep=True)

    async def look_both(self) -> None:
        """At the same time: what one holds locked, the other skips."""
        before = await self.queued()
        asked = [self.slots() for _ in self.claimers]
        taken = await asyncio.gather(
            *(
                self.take(c, slots, c.frontier.lanes(sweep=False))
                for c, slots in zip(self.claimers, asked, strict=True)
            )
        )
        for claimer, slots, mine in zip(self.claimers, asked, taken, strict=True):
            others = {c.id for other in taken for c in other.claims if other is not mine}
            self.check(
                claimer,
                [place for place in before if place[2] not in others],
                mine,
                slots,
                sweep=False,
            )

    async def claim(self, claimer: Claimer, slots: int, *, sweep: bool) -> ClaimResult:
        before = await self.queued()
        taken = await self.take(claimer, slots, claimer.frontier.lanes(sweep=sweep))
        self.check(claimer, before, taken, slots, sweep=sweep)
        return taken

    async def take(self, claimer: Claimer, slots: int, lanes: Lanes) -> ClaimResult:
        return await claim_calls.claim_jobs(
            claimer.connection, "default", KINDS, slots, claimer.name, next(NUMBERS), lanes
        )

    def check(
        self, claimer: Claimer, before: list[Place], taken: ClaimResult, slots: int, *, sweep: bool
    ) -> None:
        assert taken.looked_at is not None, "nothing is paused"
        due = {place for place in before if place[1] <= taken.looked_at}
        got = [(c.priority, c.run_at, c.id) for c in taken.claims]
        assert len(got) <= slots
        assert set(got) <= due, "what is claimed was queued until now, and is due"
        assert got == sorted(set(got)), (
            "urgent lanes first, the oldest first within a lane, nothing twice"
        )
        running = {job for other in self.claimers for job in other.holds}
        assert not running & {c.id for c in taken.claims}, "nothing is claimed that runs"
        passed = {place for place in due.difference(got) if len(got) < slots or place < got[-1]}
        if sweep:
            assert not passed, "a sweep passes over nothing"
        else:
            wrongly = {
                place for place in passed if claimer.name not in self.passable.get(place, ())
            }
            assert not wrongly, f"{len(wrongly)} passed over that did not come late"
        self.found += len(got)
        self.passed_over += len(passed)
        claimer.frontier.moved_by(taken, slots)
        claimer.limit = max(claimer.limit, taken.looked_at - MARGIN)
        claimer.holds |= {c.id: c for c in taken.claims}

    # --- what comes in

    async def insert_now(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            await self.changed(enqueue(self.database, priority=self.lane()))

    async def insert_for_the_past(self) -> None:
        ago = self.chance.choice(
            [timedelta(milliseconds=10), timedelta(minutes=3), timedelta(days=2)]
        )
        await self.changed(
            enqueue(self.database, priority=self.lane(), run_at=await self.now() - ago)
        )

    async def insert_for_soon(self) -> None:
        soon = timedelta(milliseconds=self.chance.randint(1, 40))
        await self.changed(enqueue(self.database, priority=self.lane(), delay=soon))

    async def begin_insert(self) -> None:
        connection = await self.another() if len(self.open) < 5 else None
        if connection is None:
            return
        transaction = connection.transaction()
        await transaction.start()
        for _ in range(self.chance.randint(1, 3)):
            await enqueue(connection, priority=self.lane())
        self.open.append((connection, transaction))

    async def commit_insert(self) -> None:
        """Sometimes within the margin, sometimes far beyond it."""
        if self.open:
            connection, transaction = self.open.pop(self.chance.randrange(len(self.open)))
            await self.changed(transaction.commit())
            await connection.close()

    # --- what becomes of it

    async def finish(self) -> None:
        claimer, batch = self.some_claims()
        done = await claim_calls.finish_jobs(
            claimer.connection, [Finished(c, State.COMPLETED) for c in batch]
        )
        assert done == {c.id for c in batch}
        self.ended += done

    async def put_back(self) -> None:
        """Retried or snoozed, at once or soon."""
        claimer, batch = self.some_claims()
        again = [
            Requeued(
                c,
                timedelta(milliseconds=self.chance.choice([0, 0, 5, 40])),
                self.chance.random() < 0.5,
            )
            for c in batch
        ]
        back = await self.changed(self.requeue(claimer.connection, again), put_back=True)
        stopped = [c for c in batch if c.id not in back]  # told to cancel while they ran
        self.ended += await claim_calls.finish_jobs(
            claimer.connection, [Finished(c, State.CANCELLED) for c in stopped]
        )

    async def requeue(self, connection: Connection, batch: list[Requeued]) -> set[int]:
        return await claim_calls.requeue_jobs(connection, batch)

    async def release(self) -> None:
        """As after a claim whose answer was lost."""
        claimer, batch = self.some_claims()
        known = [(c.id, c.number) for c in claimer.holds.values()]
        lost = await self.changed(
            claim_calls.release_lost(claimer.connection, "default", claimer.name, known),
            put_back=True,
        )
        assert lost == dict.fromkeys((c.id for c in batch), True)

    async def cancel(self) -> None:
        job = await self.any_job()
        if (
            job is not None
            and await client_calls.cancel_job(self.database, job, None) == "cancelled"
        ):
            self.void(job)
            self.ended.append(job)

    async def retry(self) -> None:
        """One that waits runs now; one that runs on a dead worker is queued again; one that runs on
        a living worker goes on.
        """
        job = await self.any_job()
        if job is not None:
            said = await self.changed(client_calls.retry_job(self.database, job), put_back=True)
            if said == "queued":
                self.void(job)

    async def retry_finished(self) -> None:
        if self.ended:
            job = self.ended.pop(self.chance.randrange(len(self.ended)))
            assert (
                await self.changed(client_calls.retry_job(self.database, job), put_back=True)
                == "queued"
            )

    async def amend(self) -> None:
        if queued := await self.queued():
            job = await client_calls.get_job(self.database, self.chance.choice(queued)[2])
            assert job is not None
            ago = self.chance.choice(
                [
                    None,
                    timedelta(0),
                    timedelta(milliseconds=10),
                    timedelta(minutes=1),
                    timedelta(milliseconds=-20),
                ]
            )
            run_at = None if ago is None else await self.now() - ago
            lane = self.chance.choice([None, self.lane()])
            await self.changed(
                client_calls.amend_job(self.database, job.id, job.version, None, lane, run_at, None)
            )

    # --- keeping account

    async def changed(self, change: Awaitable[Any], *, put_back: bool = False) -> Any:
        """Whoever had looked too far before a job came to its place may pass over it there; but
        never over what was put back.
        """
        before = set(await self.queued())
        result = await change
        for place in set(await self.queued()) - before:
            late = {c.name for c in self.claimers if place[1] < c.limit}
            self.passable[place] = set() if put_back else late
            self.came_late += bool(self.passable[place])
        return result

    def void(self, job: int) -> None:
        for claimer in self.claimers:
            claimer.holds.pop(job, None)

    def some_claims(self) -> tuple[Claimer, list[Claim]]:
        claimer = self.chance.choice(self.claimers)
        ids = self.chance.sample(
            sorted(claimer.holds), min(len(claimer.holds), self.chance.randint(0, 8))
        )
        return claimer, [claimer.holds.pop(job) for job in ids]

    async def any_job(self) -> int | None:
        ids = [
            row[0]
            for row in await self.database.fetch("SELECT id FROM hybrid_runner.jobs ORDER BY id")
        ]
        return self.chance.choice(ids) if ids else None

    async def queued(self) -> list[Place]:
        return [(row[0], row[1], row[2]) for row in await self.database.fetch(QUEUED)]

    async def now(self) -> datetime:
        now: datetime = await self.database.fetchval(CLOCK)
        return now

    def lane(self) -> int:
        return self.chance.randrange(10)

    def slots(self) -> int:
        return self.chance.choice([1, 2, 3, 5, 10, 50])


async def machine(dsn: str, stack: AsyncExitStack, seed: int) -> Machine:
    """Two claimers on an empty queue; by its registration the first is alive, and the other one is
    dead.
    """

    async def another() -> Connection:
        connection = await connect(dsn, FOR_CLAIMS)
        stack.push_async_callback(connection.close)
        return connection

    claimers = tuple(
        [Claimer(name, await another(), Frontier(MARGIN)) for name in ("alive", "dead")]
    )
    database = await connect(dsn)
    stack.push_async_callback(database.close)
    await living(database, "alive")
    return Machine(database, claimers, another, random.Random(seed))


@pytest.mark.parametrize("sweeps", [False, True], ids=["looks alone", "looks and sweeps"])
@pytest.mark.parametrize("seed", range(3))
async def test_looks_pass_over_late_commits_alone_and_sweeps_over_nothing(
    seed: int, sweeps: bool, dsn: str
) -> None:
    """A4, A7"""
    async with AsyncExitStack() as stack:
        random_machine = await machine(dsn, stack, seed)
        await random_machine.run(sweeps=sweeps)
    assert random_machine.found > STEPS / 4


# --- what they read
