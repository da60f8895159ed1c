"""F4: what follows a job is in its trace, below the span of the whole job."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner import Fail, Job, NewJob, Runner
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage.connections.connection import Connection
from tests.support.recorded import RecordedSpans, traces
from tests.support.traced import TRACE, TRACEPARENT
from tests.support.working import runner, working


def chain(dsn: str) -> Runner:
    """An app in which one job leaves two behind."""
    app = runner(dsn, Registry())

    @app.job("start", on_end="clean-up")
    async def start(says: Any, job: Job) -> Fail | None:
        job.then("poll", says)
        return Fail("look at it", then=NewJob("poll", "{}")) if says == "fail" else None

    @app.job("poll")
    async def poll(_: Any) -> None: ...

    @app.job("clean-up")
    async def clean_up(_: Any) -> None: ...

    return app


@pytest.mark.parametrize("says", ["fail", "nothing"])
@pytest.mark.parametrize("traceparent", [None, TRACEPARENT])
async def test_follow_ups_and_what_runs_at_the_end_are_in_one_trace(
    traceparent: str | None,
    says: str,
    dsn: str,
    database: Connection,
    recorded: RecordedSpans,
) -> None:
    async with working(chain(dsn)) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, traceparent, payload)"
            " VALUES ('start', $1, to_jsonb($2::text))",
            traceparent,
            says,
        )
        await worker.settled(3)
        await worker.idle()
    start, poll, clean_up = (
        recorded.one("job start"),
        recorded.one("job poll"),
        recorded.one("job clean-up"),
    )
    [trace] = traces([start, poll, clean_up])
    assert traceparent is None or trace == TRACE
    assert "job clean-up" in recorded.children(start)
    below = start if says == "fail" else recorded.one("run start")
    assert "job poll" in recorded.children(below)
