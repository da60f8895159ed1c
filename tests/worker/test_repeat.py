"""Work that recurs for ever: a run is over and counts as completed, the same job runs again."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import ConfigurationError, Job, Repeat, Retry, Snooze
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.settlements import Repeated
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import instruments as table
from tests.support.jobs import claim, enqueue, running
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

ROW = """
    SELECT state::text, attempt, snoozes, claim, worker_id, started_at, began_at, errors, history,
        progress, waits_for
    FROM hybrid_runner.jobs
"""
NEW = ("queued", 0, 0, None, None, None, None, None, None, None, None)


def hours(count: int = 1) -> timedelta:
    return timedelta(hours=count)


async def test_each_run_begins_anew_and_keeps_row_key_and_memory(
    dsn: str, database: Connection
) -> None:
    """Attempt, errors, budgets, began_at and history are those of a new job."""
    app = runner(dsn, Registry())
    runs = list[tuple[int, int, int, Any]]()
    told = asyncio.Event()

    @app.job("watch", max_attempts=2)
    async def watch(_: Any, job: Job) -> Snooze | Retry | Repeat:
        runs.append((job.id, job.attempt, job.snoozes, job.data))
        await job.progress(0.5)
        if len(runs) == 8:
            told.set()
            return Repeat("1h", data="last")
        if job.snoozes == 0:
            return Snooze("1ms", reason="not yet")
        if job.attempt == 1:
            return Retry("1ms", "once more")
        return Repeat("1ms", data=len(runs))

    async with working(app):
        handle = await app.enqueue("watch", key="watch", max_attempts=2)
        await told.wait()
        await until_fetched(database, "SELECT data FROM hybrid_runner.jobs", '"last"')
        [row] = await database.fetch(ROW)
        assert tuple(row) == NEW
        again = await app.enqueue("watch", key="watch")
    assert (again.id, again.enqueued) == (handle.id, "exists")
    run = [(1, 0), (1, 1), (2, 1)]
    assert runs == [
        (handle.id, *run[0], None), (handle.id, *run[1], None), (handle.id, *run[2], None),
        (handle.id, *run[0], 3), (handle.id, *run[1], 3), (handle.id, *run[2], 3),
        (handle.id, *run[0], 6), (handle.id, *run[1], 6),
    ]  # fmt: skip


class Memory(BaseModel):
    looks: int = 0


async def test_what_follows_a_run_is_stored_with_its_end_and_memory_goes_on_as_it_was_changed(
    dsn: str, database: Connection
) -> None:
    """B1, B3: and `on_end` waits for the end of the job itself."""
    app = runner(dsn, Registry())

    @app.job("note")
    async def note(_: Any) -> None: ...

    @app.job("clean")
    async def clean(_: Any) -> None: ...

    @app.job("watch", data=Memory, on_end="clean")
    async def watch(_: Any, job: Job[Memory]) -> Repeat | None:
        job.data.looks += 1
        if job.data.looks == 3:
            return None
        job.then(note, {"after": job.data.looks})
        return Repeat("1ms")

    async with working(app) as worker:
        await app.enqueue("watch")
        await worker.settled(6)
    rows = await database.fetch(
        "SELECT payload ->> 'after', payload ->> 'data' FROM hybrid_runner.archive"
        " WHERE kind <> 'watch' ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [("1", None), ("2", None), (None, '{"looks": 2}')]


async def test_the_budget_of_a_run_is_there_again_for_the_next(
    dsn: str, database: Connection
) -> None:
    """B5: counted and timed from the start of each run."""
    app = runner(dsn, Registry())
    ended = asyncio.Event()
    looks = Counter[int]()

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Snooze | Repeat | None:
        looks[job.snoozes] += 1
        if looks.total() == 9:
            ended.set()
            return None
        return Snooze("1ms") if job.snoozes < 2 else Repeat("1ms")

    async with working(app) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, max_snoozes, max_duration, finish_within)"
            " VALUES ('watch', 2, '1 hour', '1 hour')"
        )
        await ended.wait()
        await worker.settled(3)
    assert looks == {0: 3, 1: 3, 2: 3}
    [row] = await database.fetch("SELECT state::text, finish_by, run_at FROM hybrid_runner.archive")
    assert row["state"] == "completed"


async def test_a_run_counts_as_completed_and_has_no_line_of_its_own(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "hybrid_runner.worker")
    app = runner(dsn, Registry())

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Repeat:
        seen = job.data or 0
        return Repeat("1ms" if seen < 24 else "1h", data=seen + 1)

    async with working(app) as worker:
        await app.enqueue("watch")
        await worker.settled(25)
        status = worker.status()
    assert status.settled == {"completed": 25}
    values = status.metric_values
    assert sum(values[table.RUN_DURATION.name]["watch", "completed"].counts) == 25  # type: ignore[union-attr]
    assert values[table.SNOOZES.name] == values[table.RETRIES.name] == {("default", "watch"): 0}
    lines = [line for line in caplog.messages if "watch" in line and "kinds" not in line]
    assert lines == []
    # One, if all of it took no more than ten seconds.
    summaries = re.findall(
        r"^default: (\d+) completed in the last ", "\n".join(caplog.messages), re.MULTILINE
    )
    assert sum(map(int, summaries)) == 25


async def test_at_debug_level_each_run_has_a_line(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hybrid_runner.worker")
    app = runner(dsn, Registry())

    @app.job("watch")
    async def watch(_: Any) -> Repeat:
        return Repeat("1h")

    async with working(app) as worker:
        await app.enqueue("watch")
        await worker.settled(1)
    assert "watch completed a run of many" in caplog.messages


async def test_a_job_that_is_cancelled_while_it_runs_does_not_run_again(
    dsn: str, database: Connection
) -> None:
    """B6"""
    app = runner(dsn, Registry())
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job("watch")
    async def watch(_: Any) -> Repeat:
        begun.set()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            return Repeat("1ms")
        return Repeat("1h")

    async with working(app) as worker:
        handle = await app.enqueue("watch")
        await begun.wait()
        assert await handle.cancel("enough") == "requested"
        await worker.settled(1)
    assert await database.fetchval("SELECT state::text FROM hybrid_runner.archive") == "cancelled"


async def test_memory_that_cannot_be_stored_ends_the_job(dsn: str, database: Connection) -> None:
    """B3"""
    app = runner(dsn, Registry())

    @app.job("watch")
    async def watch(_: Any) -> Repeat:
        return Repeat("1s", data="x" * 1_100_000)

    async with working(app) as worker:
        await app.enqueue("watch")
        await worker.settled(1)
    error = await database.fetchval("SELECT errors -> 0 ->> 'message' FROM hybrid_runner.archive")
    assert "the data of Repeat has 1,100,002 bytes" in error


async def test_a_claim_that_is_lost_repeats_nothing(database: Connection) -> None:
    """A4"""
    taken = await running(database, key="watch")
    await database.execute("UPDATE hybrid_runner.jobs SET claim = claim + 1")
    repeated = Repeated(taken, hours(), "1")
    assert await claim_calls.repeat_jobs(database, [repeated]) == set()
    assert await database.fetchval("SELECT state::text FROM hybrid_runner.jobs") == "running"


async def test_a_batch_repeats_each_with_its_own_delay_and_memory(database: Connection) -> None:
    for key in ("a", "b", "c"):
        await enqueue(database, key=key, data='"before"')
    await database.execute("UPDATE hybrid_runner.jobs SET run_at = '2020-01-01'")
    batch = [
        Repeated(taken, hours(each), memory)
        for taken, each, memory in zip(
            await claim(database), (1, 2, 3), ("1", None, "3"), strict=True
        )
    ]
    assert len(await claim_calls.repeat_jobs(database, batch)) == 3
    due = "round(extract(epoch FROM run_at - clock_timestamp()) / 3600)::int"
    rows = await database.fetch(f"SELECT key, data, {due} FROM hybrid_runner.jobs ORDER BY key")
    assert [tuple(row) for row in rows] == [("a", "1", 1), ("b", '"before"', 2), ("c", "3", 3)]


@pytest.mark.parametrize("after", ["soon", -1, "20000d", None])
def test_a_pause_that_cannot_be_is_refused_where_it_is_said(after: Any) -> None:
    with pytest.raises(ConfigurationError):
        Repeat(after)
