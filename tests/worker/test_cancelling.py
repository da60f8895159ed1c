import asyncio
import json
import threading
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import (
    DatabaseUnavailable,
    Job,
    JobCancelled,
    JobHandle,
    NewJob,
    Snooze,
    State,
)
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.working import outcome, runner, working


async def test_a_running_job_is_cancelled_by_its_ring(dsn: str) -> None:
    app = runner(dsn, heartbeat="5m", lease="15m")  # which would find it as well
    started = asyncio.Event()

    @app.job("hang")
    async def hang(payload: dict[str, int]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with working(app):
        handle = await app.enqueue(hang, {})
        await started.wait()
        assert await handle.cancel() == "requested"
        with pytest.raises(JobCancelled):
            await handle.wait(120)


async def test_the_reason_of_a_cancel_is_kept(dsn: str) -> None:
    app = runner(dsn)
    started = asyncio.Event()

    @app.job("hang")
    async def hang(payload: dict[str, int]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with working(app):
        handle = await app.enqueue(hang, {})
        await started.wait()
        await handle.cancel("the customer left")
        await handle.cancel("twice is once")
        with pytest.raises(JobCancelled, match="the customer left"):
            await handle.wait(120)
        assert len((await handle.get()).errors) == 1


async def test_the_reason_of_a_cancel_is_not_hidden_by_a_snooze_that_came_too_late(
    dsn: str,
) -> None:
    """B6: a thread goes on until it has something to say."""
    app = runner(dsn)
    started, cancelled = threading.Event(), threading.Event()

    @app.job("look")
    def look(payload: dict[str, int], job: Job) -> Snooze | None:
        started.set()
        cancelled.wait(120)
        return job.later("the network")

    async with working(app):
        handle: JobHandle[Any] = await app.enqueue(look, {})
        await asyncio.to_thread(started.wait, 120)
        assert await handle.cancel("the customer left") == "requested"
        cancelled.set()
        with pytest.raises(JobCancelled, match="the customer left"):
            await handle.wait(120)


async def test_a_settle_whose_answer_was_lost_is_counted_once_and_is_not_stale(
    dsn: str, database: Connection
) -> None:
    """The statement commits, then the connection dies before the answer arrives."""
    app = runner(dsn)

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        pass

    async with working(app) as worker:
        lost: list[int] = []

        def losing_one_answer(finish: inside.Call) -> inside.Call:
            async def finish_and_lose_the_answer(batch: Any) -> Any:
                moved = await finish(batch)
                if not lost:
                    lost.extend(moved)
                    raise DatabaseUnavailable("the connection was lost")
                return moved

            return finish_and_lose_the_answer

        inside.replace_finish(worker, losing_one_answer)
        await app.enqueue(note, {})
        await asyncio.wait_for(worker.settled(1), 120)
        assert (worker.status().stale, worker.status().settled) == (0, {"completed": 1})


async def test_a_caller_whose_connection_has_its_own_json_codec_stores_the_same(dsn: str) -> None:
    app = runner(dsn)
    connection = await connect(dsn)
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )
    async with app:
        one = await app.enqueue("k", {"a": 1}, data={"b": 2}, connection=connection)
        [many] = await app.enqueue_many("k", [{"a": 1}], connection=connection)
        for job_id in (one.id, many.id):
            job = await app.get(job_id)
            assert job is not None
            assert job.payload == {"a": 1}
    await connection.close()


async def test_many_jobs_for_later_are_later(dsn: str, database: Connection) -> None:
    app = runner(dsn)
    async with app:
        await app.enqueue_many("k", [{}, NewJob("k"), NewJob("k", key="x")], delay="1h")
        await app.enqueue_many(
            "k",
            [NewJob("k", delay=timedelta(hours=1)), NewJob("k", key="y", delay=timedelta(hours=1))],
        )
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.jobs WHERE run_at > now() + interval '50 min'"
        )
        == 5
    )


async def test_a_cancel_whose_ring_was_lost_is_found_by_the_heartbeat(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, heartbeat="100ms")
    started = asyncio.Event()

    @app.job("hang")
    async def hang(payload: dict[str, int]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with working(app):
        handle = await app.enqueue(hang, {})
        await started.wait()
        await database.execute(
            "UPDATE hybrid_runner.jobs SET cancel_requested_at = now() WHERE id = $1", handle.id
        )
        with pytest.raises(JobCancelled):
            await handle.wait(120)


async def test_a_job_whose_cancelling_was_asked_for_is_not_retried(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)

    @app.job("fails")
    async def fails(payload: dict[str, int], job: Job) -> None:
        await database.execute(
            "UPDATE hybrid_runner.jobs SET cancel_requested_at = now() WHERE id = $1", job.id
        )
        raise ValueError("after that")

    async with working(app):
        job = await outcome(app, "fails")
    assert (job.state, job.errors[-1]["message"]) == (State.CANCELLED, "after that")
