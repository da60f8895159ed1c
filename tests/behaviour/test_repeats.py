"""Runs of jobs that repeat, while connections are cut: none is left out, and none counts twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Job, Repeat, RetryPolicy, Runner, Snooze
from hybrid_runner.errors import ConnectionLost
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.waiting import at_least, equals, until
from tests.support.working import runner

JOBS, RUNS = 20, 40
QUICK = RetryPolicy(timedelta(milliseconds=10), timedelta(milliseconds=50))
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'hybrid-runner _%' AND random() < 0.3"
)
NOTES = """
    SELECT (payload ->> 'job')::int8 AS job, (payload ->> 'run')::int AS run
    FROM hybrid_runner.all_jobs WHERE kind = 'note'
"""
NOTED = "SELECT count(*) FROM hybrid_runner.all_jobs WHERE kind = 'note'"


def repeating(dsn: str) -> Runner:
    """A kind whose jobs count their runs in their memory, and leave a note of each."""
    app = runner(dsn, poll_base="100ms", poll_cap="500ms", heartbeat="500ms", lease="10s")

    @app.job("note")
    async def note(_: Any) -> None: ...

    @app.job("count", timeout="10s", max_attempts=20, retry=QUICK)
    async def count(_: Any, job: Job) -> Repeat | Snooze | int:
        ended = (job.data or 0) + 1
        job.then("note", {"job": job.id, "run": ended})
        if random.random() < 0.1:
            raise ValueError("a run that failed once, and with it what was to follow")
        if random.random() < 0.1:
            return Snooze("5ms")
        return Repeat("5ms", data=ended) if ended < RUNS else ended

    return app


def losing_answers(repeat: inside.Call) -> inside.Call:
    """Postgres has it, and the worker does not hear of it."""

    async def repeat_perhaps_unheard(batch: Any) -> Any:
        answer = await repeat(batch)
        if random.random() < 0.1:
            raise ConnectionLost("the answer was lost")
        return answer

    return repeat_perhaps_unheard


async def test_each_run_counts_once_whatever_happens(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1, B16: memory, next run and what follows are one statement, under the claim of the run."""
    random.seed(1)
    inside.make_outages_short(monkeypatch)
    apps = [repeating(dsn) for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        for app in apps:
            await stack.enter_async_context(app)
        jobs = await apps[0].enqueue_many("count", [{}] * JOBS)
        for app in apps:
            worker = await stack.enter_async_context(app.worker({"default": 10}))
            inside.replace_repeat(worker, losing_answers)
        live = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'count'"

        async def cut() -> None:
            """After every few runs: on a busy machine, too, they go on in between."""
            while True:
                enough = at_least(await database.fetchval(NOTED) + 4)
                await until(lambda: database.fetchval(NOTED), enough, patience=150)
                with contextlib.suppress(asyncpg.PostgresError):
                    await database.execute(CUT)

        cutting = asyncio.ensure_future(cut())
        observer = await connect(dsn, {"application_name": "observer"})
        try:
            await until(lambda: observer.fetchval(live), equals(0), patience=150)
        finally:
            cutting.cancel()
            await asyncio.wait([cutting])
            await observer.close()
    rows = await database.fetch(NOTES)
    assert Counter(tuple(row) for row in rows) == Counter(
        (job.id, run) for job in jobs for run in range(1, RUNS + 1)
    )
    ends = "SELECT state::text, result FROM hybrid_runner.archive WHERE kind = 'count'"
    assert {tuple(row) for row in await database.fetch(ends)} == {("completed", str(RUNS))}
