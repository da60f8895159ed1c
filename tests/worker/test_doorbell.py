"""The doorbell with real workers on a real Postgres: whoever sleeps is rung for, and whoever looks
is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import pytest

from hybrid_runner import Worker
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.bells import (
    BELL,
    EASILY_AWAKE,
    INSERT,
    MUTED_FOR,
    MUTED_FOR_LONG,
    SLEEPERS,
    Handlers,
    found_without_poll,
    listeners_pid,
    seen,
    until_asleep,
    until_bell,
    until_looking_as_it_falls,
    until_mode,
)
from tests.support.rings import listening
from tests.support.waiting import equals, until, until_fetched
from tests.support.working import working

Open = Callable[[], Awaitable[Connection]]
SILENT = (
    "SELECT max(heartbeat_at) < clock_timestamp() - interval '2 seconds' FROM hybrid_runner.workers"
)


# --- one worker


async def test_a_worker_with_nothing_to_do_sleeps_under_an_open_bell_and_holds_the_lock(
    dsn: str, database: Connection
) -> None:
    async with working(Handlers(dsn).app) as worker:
        await until_asleep(database, worker)
        assert [row["pid"] for row in await database.fetch(SLEEPERS)] == [
            await listeners_pid(worker)
        ]
    assert not await database.fetch(SLEEPERS)


async def test_under_a_stream_of_jobs_inserts_are_quiet_and_afterwards_it_sleeps_again(
    dsn: str, database: Connection
) -> None:
    jobs = Handlers(dsn, **EASILY_AWAKE, **MUTED_FOR_LONG)
    async with working(jobs.app) as worker, listening(dsn) as rings:
        await database.fetchval(INSERT, "note")
        await jobs.next()
        await until_bell(database, bool)
        assert seen(worker).mode == "awake"
        assert await database.fetchval(MUTED_FOR) > 0
        assert await rings.so_far() == [""]
        ids = [await database.fetchval(INSERT, "note") for _ in range(20)]
        assert sorted([await jobs.next() for _ in ids]) == ids
        assert await rings.so_far() == []
        assert found_without_poll(worker) <= {
            "ring",
            "look",
        }  # `ring`: our own, by which we heard what was rung until then
        await until_asleep(database, worker)
        await database.fetchval(INSERT, "note")
        await jobs.next()
        assert await rings.so_far() == [""]


async def test_a_full_worker_that_is_alone_renews_its_mute_and_a_free_slot_looks(
    dsn: str, database: Connection
) -> None:
    jobs = Handlers(dsn, mute_renewal="20ms", full_help_after="5ms", **MUTED_FOR_LONG)
    async with working(jobs.app, {"default": 1}) as worker, listening(dsn) as rings:
        await database.fetchval(INSERT, "hold")
        await jobs.held.wait()
        muted = await until_bell(database, bool)
        renewed = await until_bell(database, lambda bell: bell > muted)
        await until_bell(database, lambda bell: bell > renewed)
        assert seen(worker).mode == "full"
        assert not await database.fetch(SLEEPERS)
        job_id = await database.fetchval(INSERT, "note")
        jobs.let_go.set()
        assert await jobs.next() == job_id
        assert found_without_poll(worker) == {"ring", "look"}
        assert await rings.so_far() == [""]  # of the job that fills it
        await until_asleep(database, worker)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
async def test_a_quiet_insert_that_commits_while_it_falls_asleep_is_found_without_a_ring(
    dsn: str,
    database: Connection,
    another: Open,
    isolation: Literal["read_committed", "repeatable_read"],
    end: str,
) -> None:
    jobs = Handlers(dsn, **EASILY_AWAKE, **MUTED_FOR_LONG)
    producer = await another()
    async with working(jobs.app) as worker, listening(dsn) as rings:
        await database.fetchval(INSERT, "note")
        await jobs.next()
        await until_bell(database, bool)
        transaction = producer.transaction(isolation=isolation)
        await transaction.start()
        job_id = await producer.fetchval(INSERT, "note")
        await until_looking_as_it_falls(worker)
        assert await database.fetchval(BELL) == 0
        await (transaction.commit() if end == "COMMIT" else transaction.rollback())
        await until_asleep(database, worker)
        assert await rings.so_far() == [""]  # of the first job alone
        if end == "COMMIT":
            assert await jobs.next() == job_id
            assert found_without_poll(worker) == {"ring", "look"}
        else:
            assert jobs.noted.empty()


async def mute(database: Connection, milliseconds: int) -> None:
    """Mute the bell as an unknown worker would."""
    await database.execute(
        "SELECT setval(doorbell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::int) "
        "FROM hybrid_runner.queues WHERE name = 'default'",
        milliseconds,
    )


async def test_finding_one_quiet_insert_does_not_end_the_wait_for_another(
    dsn: str, database: Connection, another: Open
) -> None:
    jobs = Handlers(dsn, heartbeat="5m", lease="15m", falling_pause_max="20ms")
    producers = [await another(), await another()]
    async with working(jobs.app) as worker, listening(dsn) as rings:
        await until_asleep(database, worker)
        await mute(database, 60_000)
        transactions = [producer.transaction() for producer in producers]
        for transaction in transactions:
            await transaction.start()
        ids = [await producer.fetchval(INSERT, "note") for producer in producers]
        await mute(database, -1)  # its owner has died
        # Makes the worker fall asleep anew. No later one comes: it would find what was inserted a
        # second ago and is committed now, and call it overdue.
        inside.beat_soon(worker)
        for transaction, job_id in zip(transactions, ids, strict=True):
            await until_looking_as_it_falls(worker)
            await transaction.commit()
            assert await jobs.next() == job_id
        await until_asleep(database, worker)
        assert found_without_poll(worker) == {"look"}
        assert await rings.so_far() == []


async def test_a_ring_for_help_makes_a_sleeper_wait_for_what_the_undone_mute_kept_quiet(
    dsn: str, database: Connection, another: Open
) -> None:
    jobs = Handlers(dsn, falling_pause_max="20ms")
    producer = await another()
    async with working(jobs.app) as worker:
        await until_asleep(database, worker)
        await mute(database, 60_000)
        async with producer.transaction():
            job_id = await producer.fetchval(INSERT, "note")
            [undone] = await database.fetch(
                "SELECT hybrid_runner.mute_bell('default', 60000, 'full', false) AS undone"
            )
            assert undone["undone"]
            await until_looking_as_it_falls(worker)
        assert await jobs.next() == job_id
        assert found_without_poll(worker) == {"look"}
        await until_asleep(database, worker)


async def test_an_insert_with_an_old_snapshot_reads_the_newest_bell(
    dsn: str, database: Connection, another: Open
) -> None:
    """REPEATABLE READ: muted when it began, open when it inserts."""
    jobs = Handlers(dsn, **EASILY_AWAKE, **MUTED_FOR_LONG)
    producer = await another()
    async with working(jobs.app) as worker, listening(dsn) as rings:
        await database.fetchval(INSERT, "note")
        await jobs.next()
        await until_bell(database, bool)
        async with producer.transaction(isolation="repeatable_read"):
            await producer.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
            await until_asleep(database, worker)
            job_id = await producer.fetchval(INSERT, "note")
        assert await jobs.next() == job_id
        assert await rings.so_far() == ["", ""]


@pytest.mark.parametrize("mode", ["asleep", "awake"])
async def test_a_listener_that_is_lost_comes_back_by_itself_and_what_came_meanwhile_runs(
    dsn: str, database: Connection, mode: str
) -> None:
    jobs = Handlers(dsn, **EASILY_AWAKE)
    async with working(jobs.app) as worker:
        if mode == "awake":
            await database.fetchval(INSERT, "note")
            await jobs.next()
        await until_mode(worker, mode)
        lost = await listeners_pid(worker)
        await database.execute("SELECT pg_terminate_backend($1)", lost)
        job_id = await database.fetchval(INSERT, "note")
        assert await jobs.next() == job_id
        await until_mode(worker, "asleep")
        await until(
            lambda: database.fetch(SLEEPERS),
            lambda rows: rows and lost not in [row["pid"] for row in rows],
        )
        assert await listeners_pid(worker) != lost
        await until_asleep(database, worker)
        assert await database.fetchval(INSERT, "note") == await jobs.next()
        found_without_poll(worker)


async def test_a_listener_that_is_kept_away_makes_it_deaf(dsn: str, database: Connection) -> None:
    jobs = Handlers(dsn)
    async with working(jobs.app) as worker:
        opened = inside.send_listener_to(worker, "postgresql://nobody@127.0.0.1:1/nowhere")
        await database.execute("SELECT pg_terminate_backend($1)", await listeners_pid(worker))
        await until_mode(worker, "deaf")
        # Its session is shown until it has ended, which the worker knows a moment earlier.
        await until(lambda: database.fetch(SLEEPERS), equals([]))
        inside.send_listener_to(worker, opened)
        await until_asleep(database, worker)
        assert await database.fetchval(INSERT, "note") == await jobs.next()


NONSENSE = [
    "xyzzy",
    "two words",
    " ",
    "pass",
    "pass now",
    "pass now 1",
    "pass now 1 2 3",
    "pass now -1 0",
    "pass now 1.5 x",
    f"pass now {'9' * 30} 0",
    f"pass now 0 {'9' * 30}",
    "pass later 0 0",
    "pass  0 0",
    "pass now ² ²",
    "pass now \u0661 \u0660",
    "gone",
    "gone ",
    "gone a b",
    "gone nobody",
    "cancel",
    "cancel x",
    f"cancel {'9' * 40}",
    "help me",
    "HELP",
    "later later",
    "later 0",
    "later 1",
    "later -1",
    f"later {'9' * 30}",
    "x" * 7999,
    "\n",
    "'; DROP TABLE jobs; --",
]


async def test_nonsense_on_the_channel_does_no_harm(dsn: str, database: Connection) -> None:
    jobs = Handlers(dsn)
    async with working(jobs.app) as worker:
        for payload in NONSENSE:
            await database.execute("SELECT pg_notify('hybrid_runner.default', $1)", payload)
        job_id = await database.fetchval(INSERT, "note")
        assert await jobs.next() == job_id
        await until_asleep(database, worker)
        assert worker.status().ended_loops == ()


# --- the heartbeat


@asynccontextmanager
async def two_asleep(
    database: Connection, jobs: Handlers, slots: int = 20
) -> AsyncIterator[list[Worker]]:
    async with jobs.app, AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(jobs.app.worker({"default": slots})) for _ in range(2)
        ]
        await until_asleep(database, *workers)
        yield workers


async def test_what_was_quiet_under_the_mute_of_a_dead_worker_is_found_by_a_heartbeat(
    dsn: str, database: Connection
) -> None:
    jobs = Handlers(dsn, heartbeat="500ms")
    async with two_asleep(database, jobs) as workers, listening(dsn) as rings:
        async with database.transaction():
            await mute(database, 300)
            job_id = await database.fetchval(INSERT, "note")
        assert await jobs.next() == job_id
        assert found_without_poll(*workers) <= {
            "expired",
            "sweep",
        }  # `sweep` if the beats came so late that it was overdue
        assert await rings.so_far() == []
        await until_asleep(database, *workers)


async def test_an_overdue_job_that_nobody_rang_for_is_found_by_a_heartbeat(
    dsn: str, database: Connection
) -> None:
    jobs = Handlers(dsn, heartbeat="300ms")
    async with two_asleep(database, jobs) as workers:
        await database.execute(
            "ALTER TABLE hybrid_runner.jobs DISABLE TRIGGER ring_for_inserted_jobs"
        )
        job_id = await database.fetchval(INSERT, "note")
        assert await jobs.next() == job_id
        assert found_without_poll(*workers) == {"sweep"}


async def test_a_fallback_poll_sets_the_timer(dsn: str, database: Connection) -> None:
    """A job that was further off than rings reach is found when it is due, not by the next poll."""
    jobs = Handlers(dsn, heartbeat="5m", lease="20m")
    async with working(jobs.app) as worker:
        await until_asleep(database, worker)
        await until_fetched(database, SILENT, True)  # a heartbeat brings the next due time, too
        await database.execute(
            "ALTER TABLE hybrid_runner.jobs DISABLE TRIGGER ring_for_inserted_jobs"
        )
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, run_at)"
            " VALUES ('note', clock_timestamp() + interval '6 seconds')"
        )
        inside.wake(worker, Reason.SWEEP)
        await jobs.next()
        assert found_without_poll(worker) == {"timer"}


# --- one is full or leaves, another one sleeps


async def test_a_sleeper_gets_at_once_what_a_full_worker_cannot_take(
    dsn: str, database: Connection
) -> None:
    """Its mute is undone, and the help it rings for covers what was quiet until then."""
    jobs = Handlers(dsn, **EASILY_AWAKE, full_help_after="1m", **MUTED_FOR_LONG)
    async with two_asleep(database, jobs, slots=1) as workers, listening(dsn) as rings:
        looks = {worker.id: seen(worker).looks for worker in workers}
        await database.fetchval(INSERT, "hold")
        await until_bell(database, bool)
        [full] = [worker for worker in workers if seen(worker).running]
        [sleeper] = [worker for worker in workers if worker is not full]
        await until(lambda: seen(sleeper).looks > looks[sleeper.id])  # the ring was for both
        await until_mode(sleeper, "asleep")
        quiet = await database.fetchval(INSERT, "note")
        inside.was_full_for_long(full)
        inside.wake(full, Reason.SLOT)
        assert await jobs.next() == quiet
        assert seen(full).mode == "full"
        assert found_without_poll(sleeper) == {"help"}
        assert (await rings.so_far()).count("") == 1  # of the job that fills it
        await until_mode(sleeper, "asleep")
        loud = await database.fetchval(INSERT, "note")
        assert await jobs.next() == loud
        assert seen(full).mode == "full"
        jobs.let_go.set()
        await until_asleep(database, *workers)
        found_without_poll(*workers)


async def test_a_sleeper_that_wakes_up_under_a_stream_leaves_no_mute_of_a_full_worker_behind(
    dsn: str, database: Connection
) -> None:
    """One is full, the other awake until the stream ends: then the bell is open, and the next
    insert rings.
    """
    jobs = Handlers(dsn, **EASILY_AWAKE)
    async with two_asleep(database, jobs, slots=1) as workers:
        await database.fetchval(INSERT, "hold")
        await jobs.held.wait()
        [sleeper] = [worker for worker in workers if not seen(worker).running]
        ids = [await database.fetchval(INSERT, "note") for _ in range(20)]
        assert sorted([await jobs.next() for _ in ids]) == ids
        await until_mode(sleeper, "asleep")
        assert await database.fetchval(INSERT, "note") == await jobs.next()
        jobs.let_go.set()
        await until_asleep(database, *workers)
        found_without_poll(*workers)


async def test_a_worker_that_stops_opens_the_bell_and_its_jobs_go_to_another_one(
    dsn: str, database: Connection
) -> None:
    """It is full and had muted; the insert that was quiet under its mute goes to the sleeper
    too.
    """
    jobs = Handlers(dsn, **EASILY_AWAKE, full_help_after="1m", **MUTED_FOR_LONG)
    async with two_asleep(database, jobs, slots=1) as workers, listening(dsn) as rings:
        await database.fetchval(INSERT, "hold")
        await until_bell(database, bool)
        [full] = [worker for worker in workers if seen(worker).running]
        [sleeper] = [worker for worker in workers if worker is not full]
        quiet = await database.fetchval(INSERT, "note")
        jobs.held.clear()
        await full.stop(jobs.app.settings.tuning.mute_renewal)
        assert await jobs.next() == quiet
        await asyncio.wait_for(jobs.held.wait(), 120)
        assert (await rings.so_far())[:3] == [
            "",
            f"gone {full.id}",
            "help",
        ]  # the first is of the job that fills it
        jobs.let_go.set()
        await until_asleep(database, sleeper)
        found_without_poll(sleeper)
