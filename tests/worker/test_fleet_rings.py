"""Rings in a fleet of real workers: few look for each, and those who cannot pass it on."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from hybrid_runner import Worker
from hybrid_runner.policy.ring_order import place
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.bells import (
    BELL,
    EASILY_AWAKE,
    INSERT,
    MUTED_FOR_LONG,
    SLEEPERS,
    Handlers,
    found_without_poll,
    listeners_pid,
    seen,
    until_asleep,
    until_bell,
    until_mode,
)
from tests.support.rings import Rings, listening
from tests.support.waiting import until
from tests.support.working import working


class Fleet:
    """Workers that know each other, and the same kinds."""

    def __init__(self, handlers: list[Handlers], workers: list[Worker]) -> None:
        self.workers = workers
        self._handlers = handlers

    def ranked(self, ringer: int) -> list[Worker]:
        """The workers in the order in which a ring of that session is for them."""
        ids = [worker.id for worker in self.workers]
        return sorted(self.workers, key=lambda worker: place(ringer, worker.id, ids))

    async def next(self) -> int:
        """The id of the next job that any of them ran."""
        waiting = [asyncio.ensure_future(jobs.next()) for jobs in self._handlers]
        done, late = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return done.pop().result()

    def looks(self) -> int:
        return sum(seen(worker).looks for worker in self.workers)


@asynccontextmanager
async def fleet(dsn: str, database: Connection, size: int, slots: int) -> AsyncIterator[Fleet]:
    handlers = [Handlers(dsn, **FAR_HEARTBEATS) for _ in range(size)]
    async with AsyncExitStack() as stack:
        workers = []
        for n, jobs in enumerate(handlers):
            await stack.enter_async_context(jobs.app)
            workers.append(
                await stack.enter_async_context(
                    jobs.app.worker({"default": slots}, worker_id=f"worker-{n}")
                )
            )
        await until(
            lambda: all(
                len(inside.members(w)) == size and not inside.kinds_differ(w) for w in workers
            )
        )
        await until_asleep(database, *workers)
        yield Fleet(handlers, workers)


async def until_heard(rings: Rings, *payloads: str) -> None:
    """Wait until these were rung: another worker may have the job before both of those who were to
    pass it on have heard of it.
    """
    heard = set[str]()

    async def heard_so_far() -> set[str]:
        heard.update(await rings.so_far())
        return heard

    await until(heard_so_far, set(payloads).issubset)


async def test_of_a_sleeping_fleet_few_look_for_one_ring(dsn: str, database: Connection) -> None:
    async with fleet(dsn, database, 8, slots=5) as workers:
        looks = workers.looks()
        job_id = await database.fetchval(INSERT, "note")
        assert await workers.next() == job_id
        await until(lambda: workers.looks() >= looks + 3)  # two at once, one a moment later
        for worker in workers.workers:
            await listeners_pid(worker)  # what was rung before has arrived
            await until_mode(worker, "asleep")
        assert workers.looks() == looks + 3
        found_without_poll(*workers.workers)


async def test_those_whom_a_ring_is_for_pass_it_on_when_they_are_full(
    dsn: str, database: Connection
) -> None:
    async with fleet(dsn, database, 8, slots=1) as workers, listening(dsn) as rings:
        ringer = database.get_server_pid()
        first, second, *others = workers.ranked(ringer)
        for worker in (first, second):
            inside.fill(worker, 1)
            await until(partial(inside.is_full, worker))
        await until_asleep(database, *others)
        job_id = await database.fetchval(INSERT, "note")
        assert await workers.next() == job_id
        await until_heard(rings, f"pass now {ringer} 2", f"pass now {ringer} 3")
        for worker in (first, second):
            inside.free(worker)
        found_without_poll(*workers.workers)


async def test_those_whose_threads_are_short_look_and_pass_the_ring_on(
    dsn: str, database: Connection
) -> None:
    async with fleet(dsn, database, 8, slots=1) as workers, listening(dsn) as rings:
        ringer = database.get_server_pid()
        first, second, *_ = workers.ranked(ringer)
        looks = [seen(worker).looks for worker in (first, second)]
        for worker in (first, second):
            inside.make_short(worker)
        job_id = await database.fetchval(INSERT, "note")
        assert await workers.next() == job_id
        await until(
            lambda: all(
                seen(worker).looks > before
                for worker, before in zip((first, second), looks, strict=True)
            )
        )
        await until_heard(rings, f"pass now {ringer} 2", f"pass now {ringer} 3")


async def test_whoever_leaves_jobs_to_others_keeps_nobody_asleep(
    dsn: str, database: Connection
) -> None:
    jobs = Handlers(dsn, **EASILY_AWAKE, **MUTED_OFTEN, **FAR_HEARTBEATS)
    async with one_of(jobs) as worker, listening(dsn) as rings:
        await database.fetchval(INSERT, "note")
        await until_bell(database, bool)
        async with busy(database, jobs):
            inside.make_short(worker)
            await until_bell(database, lambda bell: bell == 0)
            for _ in range(5):
                looks = seen(worker).looks
                await until(lambda: seen(worker).looks, partial(operator.lt, looks + 5))
                assert await database.fetchval(BELL) == 0
            assert seen(worker).mode == "awake"
        assert "help" in await rings.so_far()


MUTED_OFTEN = {"mute_lease": "50s", "mute_renewal": "20ms"}

FAR_HEARTBEATS = {"heartbeat": "5m", "lease": "15m"}
"""So that none of them finds what a ring should have brought."""

ALWAYS_ASLEEP: dict[str, Any] = {"doorbell_rate": 1e6, "sweep_cost_factor": 0}
"""No worker looks by itself instead of waiting for rings: neither because jobs come fast, nor
because a look on a busy machine took so long that the next may not sweep and another must follow.
"""


async def test_a_ring_is_for_all_while_they_know_different_kinds(
    dsn: str, database: Connection
) -> None:
    """B17: those whom it would be for might not know the kind; a deploy that adds one has such a
    fleet.
    """
    common = [Handlers(dsn, **FAR_HEARTBEATS, **ALWAYS_ASLEEP) for _ in range(5)]
    special = Handlers(dsn, hold="rare", **FAR_HEARTBEATS, **ALWAYS_ASLEEP)
    special.let_go.set()
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(one_of(jobs)) for jobs in (*common, special)]
        await until(lambda: all(len(inside.members(worker)) == 6 for worker in workers))
        await until_asleep(database, *workers, kinds_differ=True)
        for _ in range(12):
            special.held.clear()
            await database.fetchval(INSERT, "rare")
            await asyncio.wait_for(special.held.wait(), 120)
        await until(lambda: seen(workers[-1]).running == 0)
        ways = found_without_poll(*workers)
        assert "ring" in ways
        # By `timer` if it came in the very moment in which the look for the one before asked what
        # comes next.
        assert ways <= {"ring", "timer"}


async def test_whoever_looks_by_itself_does_not_mute_for_kinds_it_does_not_know(
    dsn: str, database: Connection
) -> None:
    """B17: it is awake and has muted the bell when a worker arrives that knows another kind."""
    awake = Handlers(dsn, **EASILY_AWAKE, **MUTED_FOR_LONG, **FAR_HEARTBEATS)
    special = Handlers(dsn, hold="rare", **FAR_HEARTBEATS)
    special.let_go.set()
    async with one_of(awake) as first:
        await database.fetchval(INSERT, "note")
        await until_bell(database, bool)
        async with one_of(special) as second, busy(database, awake):
            await until(lambda: inside.kinds_differ(first) and inside.kinds_differ(second))
            await until_bell(database, lambda bell: bell == 0)
            await until_mode(second, "asleep")
            for _ in range(5):
                special.held.clear()
                await database.fetchval(INSERT, "rare")
                await asyncio.wait_for(special.held.wait(), 120)
                assert await database.fetchval(BELL) == 0
            assert seen(first).mode == "awake"
            found_without_poll(first, second)


async def test_a_worker_that_is_leaving_is_counted_on_by_nobody(
    dsn: str, database: Connection
) -> None:
    """It runs what it has for as long as its grace is, and hears rings that it must not be asked to
    answer.
    """
    jobs = [Handlers(dsn, hold=hold, heartbeat="100ms", grace="5m") for hold in ("hold", "hold")]
    async with one_of(jobs[0]) as first, one_of(jobs[1]) as second:
        await until_asleep(database, first, second)
        await database.fetchval(INSERT, "hold")
        await asyncio.wait(
            {asyncio.ensure_future(each.held.wait()) for each in jobs},
            return_when=asyncio.FIRST_COMPLETED,
        )
        leaving, other = (second, first) if jobs[1].held.is_set() else (first, second)
        stopping = asyncio.create_task(leaving.stop())
        await until(lambda: inside.members(other) == {other.id})
        beaten = inside.beaten_at(other)
        await until(
            lambda: inside.beaten_at(other) > beaten + 0.2
        )  # two heartbeats, and it has not come back
        assert inside.members(other) == {other.id}
        assert len(await database.fetch(SLEEPERS)) == 1
        assert (
            await database.fetchval(
                "SELECT queues FROM hybrid_runner.workers WHERE id = $1", leaving.id
            )
            == "{}"
        )
        for each in jobs:
            each.let_go.set()
        await stopping


async def test_forged_rings_that_are_to_be_passed_on_are_passed_on_by_the_handful(
    dsn: str, database: Connection
) -> None:
    """Each could cause a message of each full worker in turn. Beyond the allowance all are asked to
    look, once for many.
    """
    async with fleet(dsn, database, 4, slots=1) as workers, listening(dsn) as rings:
        for worker in workers.workers:
            inside.make_short(worker)
        began = asyncio.get_running_loop().time()
        for _ in range(20):
            await database.execute(
                "SELECT pg_notify('hybrid_runner.default', format('pass now %s 0', i)) FROM"
                " generate_series(1, 100) AS i"
            )
        for worker in workers.workers:
            await listeners_pid(worker)  # behind what it rang
        heard = await rings.so_far()
        allowed = 4 * (100 + 50 * (asyncio.get_running_loop().time() - began))
        assert 0 < sum(text.endswith(" 2") for text in heard) <= allowed
        assert "help" in heard
        assert await database.fetchval(INSERT, "note") == await workers.next()


@asynccontextmanager
async def one_of(jobs: Handlers) -> AsyncIterator[Worker]:
    """One worker that hears."""
    async with working(jobs.app, {"default": 5}) as worker:
        await until(lambda: worker.id in inside.members(worker))
        yield worker


@asynccontextmanager
async def busy(database: Connection, jobs: Handlers) -> AsyncIterator[None]:
    """Insert so many jobs that the worker stays awake."""
    enough = asyncio.Event()

    async def insert() -> None:
        connection = await connect(jobs.app.dsn)
        try:
            while not enough.is_set():  # wait_for may swallow that it is cancelled, on Python 3.11
                await connection.execute(INSERT, "note")
                await jobs.next()
        finally:
            connection.terminate()

    inserting = asyncio.create_task(insert())
    try:
        yield
    finally:
        enough.set()
        inserting.cancel()
        await asyncio.gather(inserting, return_exceptions=True)
