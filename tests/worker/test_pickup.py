import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import DatabaseUnavailable, Job, Runner, Snooze
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.proxy import Proxy
from tests.support.waiting import differs_from, has, until
from tests.support.working import runner, working

INSERT = "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ($1, '{}') RETURNING id"
DEAD_END = "postgresql://nobody@127.0.0.1:1/nowhere"


def noting(app: Runner, name: str = "note") -> asyncio.Queue[int]:
    """A kind whose handler notes the job's id."""
    noted: asyncio.Queue[int] = asyncio.Queue()

    @app.job(name)
    async def note(payload: dict[str, int], job: Job) -> None:
        noted.put_nowait(job.id)

    return noted


async def test_an_insert_by_plain_sql_is_picked_up_by_its_ring(
    dsn: str, database: Connection
) -> None:
    """A1 F3 F5"""
    app = runner(dsn)
    noted = noting(app)
    async with working(app) as worker:
        job_id = await database.fetchval(INSERT, "note")
        assert await asyncio.wait_for(noted.get(), 120) == job_id
        await worker.settled(1)
        assert worker.status().queues[0].found.get("ring") == 1


async def test_what_was_inserted_before_the_worker_came_is_found_at_its_start(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    noted = noting(app)
    job_id = await database.fetchval(INSERT, "note")
    async with working(app):
        assert await noted.get() == job_id


async def test_without_rings_the_poll_finds_it(dsn: str, database: Connection) -> None:
    """A1 A2 D2: the listener has nowhere to connect, the poll goes on."""
    app = runner(dsn, listen_dsn=DEAD_END, poll_base="200ms", poll_cap="300ms")
    noted = noting(app)
    async with working(app, deaf=True) as worker:
        await worker.idle()
        job_id = await database.fetchval(INSERT, "note")
        assert await asyncio.wait_for(noted.get(), 120) == job_id
        assert not worker.status().hearing
        assert worker.status().queues[0].polls >= 1


async def test_a_ring_that_was_dropped_is_caught_by_the_slow_poll(
    dsn: str, database: Connection
) -> None:
    """A3 F3"""
    app = runner(dsn, hybrid_poll_base="300ms", hybrid_poll_cap="300ms")
    noted = noting(app)
    async with working(app) as worker:
        await database.execute(
            "ALTER TABLE hybrid_runner.jobs DISABLE TRIGGER ring_for_inserted_jobs"
        )
        job_id = await database.fetchval(INSERT, "note")
        assert await asyncio.wait_for(noted.get(), 120) == job_id
        assert worker.status().queues[0].found.get("sweep") == 1


async def test_a_lost_listener_comes_back_and_sweeps_up_what_it_missed(
    dsn: str, database: Connection
) -> None:
    """A3"""
    app = runner(dsn)
    noted = noting(app)
    async with Proxy(dsn) as proxy:
        app = runner(dsn, listen_dsn=proxy.dsn)
        noted = noting(app)
        async with working(app) as worker:
            await proxy.cut()
            await until(lambda: not worker.status().hearing)
            job_id = await database.fetchval(INSERT, "note")
            await proxy.mend()
            assert await asyncio.wait_for(noted.get(), 120) == job_id
            await worker.hearing()


async def test_the_worker_outlives_an_outage_and_then_works_at_once(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A9"""
    async with Proxy(dsn) as proxy:
        app = runner(proxy.dsn, poll_base="100ms", poll_cap="200ms")
        noted = noting(app)
        async with working(app) as worker:
            with caplog.at_level(logging.WARNING, "hybrid_runner"):
                await proxy.cut()
                job_id = await database.fetchval(INSERT, "note")
                await until(lambda: caplog.text, has("claiming from default"))
            await proxy.mend()
            assert await asyncio.wait_for(noted.get(), 120) == job_id
            await worker.settled(1)
            assert worker.status().queues[0].consecutive_errors == 0


async def test_an_outcome_reached_during_an_outage_is_written_afterwards(
    dsn: str, database: Connection
) -> None:
    """A9"""
    release = asyncio.Event()
    started = asyncio.Event()
    async with Proxy(dsn) as proxy:
        app = runner(proxy.dsn)

        @app.job("hold")
        async def hold(payload: dict[str, int]) -> str:
            started.set()
            await release.wait()
            return "kept"

        async with working(app) as worker:
            job_id = await database.fetchval(INSERT, "hold")
            await started.wait()
            await proxy.cut()
            release.set()
            await until(lambda: worker.status().pending_settlements)
            await proxy.mend()
            await asyncio.wait_for(worker.settled(1), 120)
    assert (
        await database.fetchval("SELECT result FROM hybrid_runner.archive WHERE id = $1", job_id)
        == '"kept"'
    )


async def test_a_job_for_later_starts_when_it_is_due_and_not_before(
    dsn: str, database: Connection
) -> None:
    """The timer: the fallback poll and the next heartbeat are minutes away."""
    app = runner(dsn, heartbeat="4m", lease="15m")
    noted = noting(app)
    async with working(app):
        job_id = (await app.enqueue("note", {}, delay="400ms")).id
        assert await asyncio.wait_for(noted.get(), 120) == job_id
    row = await database.fetchrow(
        "SELECT started_at - run_at AS late FROM hybrid_runner.archive WHERE id = $1", job_id
    )
    assert row is not None
    assert timedelta(0) <= row["late"] < timedelta(minutes=1)


async def test_an_earlier_job_resets_the_timer_of_a_later_one(dsn: str) -> None:
    app = runner(dsn)
    noted = noting(app)
    async with working(app):
        late = (await app.enqueue("note", {}, delay="5s")).id  # the other is there by then
        early = (await app.enqueue("note", {}, delay="300ms")).id
        assert [await asyncio.wait_for(noted.get(), 120) for _ in range(2)] == [early, late]


async def test_a_job_that_is_put_back_for_later_costs_one_look(
    dsn: str, database: Connection
) -> None:
    """Its ring says when it is due, so nobody looks for that and asks."""
    app = runner(dsn)

    @app.job("wait")
    async def wait(_: dict[str, int], job: Job) -> Snooze | None:
        return Snooze(0.1) if job.snoozes < 20 else None

    async with working(app) as worker:
        before = worker.status().queues[0].looks
        handle = await app.enqueue("wait", {})
        await handle.wait(timeout=120)
        looks = worker.status().queues[0].looks - before
    assert 21 <= looks <= 31, "it was two each"


async def test_urgent_jobs_go_first_and_within_a_priority_the_oldest(dsn: str) -> None:
    """A7"""
    app = runner(dsn)
    noted = noting(app)
    async with app:
        wanted: list[tuple[int, int]] = []
        for place, priority in enumerate([5, 0, 9, 5, 0]):
            handle = await app.enqueue("note", {}, priority=priority)
            wanted.append((priority * 10 + place, handle.id))
        async with app.worker({"default": 1}) as worker:
            await worker.settled(5)
    assert [noted.get_nowait() for _ in range(5)] == [job_id for _, job_id in sorted(wanted)]


async def test_a_kind_that_nobody_here_knows_is_left_for_others(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    noted = noting(app)
    async with working(app) as worker:
        stranger = await database.fetchval(INSERT, "unknown_here")
        known = await database.fetchval(INSERT, "note")
        assert await noted.get() == known
        await worker.idle()
        assert (
            await database.fetchval("SELECT state FROM hybrid_runner.jobs WHERE id = $1", stranger)
            == "queued"
        )


async def test_a_paused_queue_is_left_alone_until_it_is_resumed(dsn: str) -> None:
    app = runner(dsn)
    noted = noting(app)
    async with working(app) as worker:
        assert await app.pause("default")
        looks = worker.status().queues[0].looks
        job_id = (await app.enqueue("note", {})).id
        await until(lambda: worker.status().queues[0].looks, differs_from(looks))
        assert noted.empty()
        assert await app.resume("default")
        assert await asyncio.wait_for(noted.get(), 120) == job_id


async def test_never_more_jobs_run_than_there_are_slots(dsn: str) -> None:
    """A13"""
    running, most = 0, 0
    app = runner(dsn)

    @app.job("count")
    async def count(payload: dict[str, int]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    async with working(app, {"default": 3}) as worker:
        await app.enqueue_many("count", [{} for _ in range(60)])
        await asyncio.wait_for(worker.settled(60), 120)
    assert most == 3


async def test_a_claim_records_state_time_and_worker(dsn: str, database: Connection) -> None:
    """A6"""
    app = runner(dsn)
    seen: asyncio.Queue[tuple[str, str, bool]] = asyncio.Queue()

    @app.job("look")
    async def look(payload: dict[str, int], job: Job) -> None:
        view = await app.get(job.id)
        assert view is not None
        seen.put_nowait((view.state, view.worker_id or "", view.started_at is not None))

    async with working(app, worker_id="worker-7"):
        await app.enqueue(look, {})
        assert await seen.get() == ("running", "worker-7", True)


async def test_a_claim_whose_answer_was_lost_runs_all_the_same(
    dsn: str, database: Connection
) -> None:
    """The claim commits, then the connection dies; what runs or waits to be written down meanwhile
    is left alone.
    """
    app = runner(dsn)
    noted = noting(app)
    hold, started = asyncio.Event(), asyncio.Event()

    @app.job("hold")
    async def held(payload: dict[str, int], job: Job) -> int:
        started.set()
        await hold.wait()
        return job.attempt

    async with working(app) as worker:
        other = await app.enqueue(held, {})
        await started.wait()
        lost: list[int] = []

        def losing_one_answer(claim: inside.Call) -> inside.Call:
            async def lose_the_answer(*arguments: Any) -> Any:
                rows = await claim(*arguments)
                if rows[0]["id"] is not None and not lost:
                    lost.extend(row["id"] for row in rows)
                    raise DatabaseUnavailable("the connection was lost")
                return rows

            return lose_the_answer

        inside.replace_claim(worker, losing_one_answer)
        job_id = (await app.enqueue("note", {})).id
        assert await asyncio.wait_for(noted.get(), 120) == job_id
        assert lost == [job_id]
        hold.set()
        assert await other.wait(120) == 1
    assert (
        await database.fetchval("SELECT attempt FROM hybrid_runner.archive WHERE id = $1", job_id)
        == 1
    )
