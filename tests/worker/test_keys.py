"""What a worker makes of jobs that wait for another one's key, and of those that came too late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import JobCancelled
from hybrid_runner.model.jobs import State
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.keys import Keys
from tests.support.jobs import enqueue
from tests.support.working import runner, working


async def test_a_burst_behind_a_running_job_is_one_run_that_sees_the_last_call(dsn: str) -> None:
    app = runner(dsn)
    begun, go_on = asyncio.Event(), asyncio.Event()
    seen = list[Any]()
    most = [0, 0]

    @app.job("index")
    async def index(payload: Any) -> None:
        most[0] += 1
        most[1] = max(most)
        seen.append(payload)
        begun.set()
        await go_on.wait()
        most[0] -= 1

    async with working(app) as worker:
        await app.enqueue(index, 0, key="k", on_conflict="follow")
        await begun.wait()
        said = [
            (await app.enqueue(index, number, key="k", on_conflict="follow")).enqueued
            for number in range(1, 20)
        ]
        assert set(said) == {"follows", "replaced"}
        go_on.set()
        last = await app.enqueue(index, 20, key="k", on_conflict="follow")
        await last.wait(120)
        await worker.idle()
    assert (seen[0], seen[-1], most[1]) == (0, 20, 1)
    assert len(seen) <= 3


async def test_collected_items_are_all_worked_on_in_their_order(dsn: str) -> None:
    app = runner(dsn)
    seen = list[int]()

    @app.job("collect")
    async def collect(items: list[int]) -> None:
        seen.extend(items)

    async with working(app) as worker:
        handles = [
            await app.enqueue(collect, [number], key="k", on_conflict="collect", max_items=7)
            for number in range(60)
        ]
        await handles[-1].wait(120)
        await worker.idle()
    assert seen == list(range(60))


async def test_a_job_that_was_not_begun_in_time_is_cancelled_without_its_handler(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    ran = list[Any]()

    @app.job("late")
    async def late(payload: Any) -> None:
        ran.append(payload)

    async with app:
        soon = datetime.now(UTC) + timedelta(hours=1)
        handle = await app.enqueue(late, 1, start_by=soon)
        await database.execute("UPDATE hybrid_runner.jobs SET start_by = now() - interval '1 s'")
        in_time = await app.enqueue(late, 2, start_by=soon)
        async with app.worker():
            with pytest.raises(JobCancelled, match=r"start_by .* passed before it could begin"):
                await handle.wait(120)
            await in_time.wait(120)
        view = await handle.get()
    assert ran == [2]
    assert (view.state, view.errors[-1]["type"]) == (State.CANCELLED, "Expired")


async def test_the_duty_ends_what_nobody_began_wakes_sleepers_and_forgets_keys(
    database: Connection,
) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    late = await enqueue(database, start_by=datetime(2020, 1, 1, tzinfo=UTC))
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, key, run_at) VALUES ('work', '>k', 'infinity');"
        " INSERT INTO hybrid_runner.taken_keys (key, job_id, until) VALUES ('a', 1, now()),"
        " ('b', 2, now()), ('c', 3, now() + interval '1 hour')"
    )
    duty = Keys(at_once=1)
    await database.execute("SET ROLE hybrid_runner_worker")
    await duty.run(database)
    await database.execute("RESET ROLE")
    rows = await database.fetch("SELECT key, run_at <= now() FROM hybrid_runner.jobs")
    assert [tuple(row) for row in rows] == [("k", True)]
    rows = await database.fetch("SELECT id, state::text FROM hybrid_runner.archive")
    assert [tuple(row) for row in rows] == [(late, "cancelled")]
    assert [row[0] for row in await database.fetch("SELECT key FROM hybrid_runner.taken_keys")] == [
        "c"
    ]
    assert duty.woken == 1


async def test_keys_that_somebody_holds_keep_no_other_job_waiting(
    dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Each time that a worker asks for one of these, it waits."""
    app, done = runner(dsn, slots=100), asyncio.Event()

    @app.job("work")
    async def work(_: Any) -> None:
        done.set()

    many = (
        "INSERT INTO hybrid_runner.jobs (kind, key, priority)"
        " SELECT 'work', $1 || n, 0 FROM generate_series(1, 80) AS n"
    )
    await database.execute(many, ">k")
    holder = await another()
    held = holder.transaction()
    await held.start()
    await holder.execute(many, "k")
    await enqueue(database)
    # Nobody falls asleep while a transaction is open: it may have inserted jobs.
    async with working(app, deaf=True):
        await done.wait()
        asked = await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.jobs WHERE run_at > created_at + interval '0.5 s'"
        )
        assert asked < 40
        await held.rollback()
