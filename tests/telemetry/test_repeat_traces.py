"""F4: each run of a job that repeats is a trace of its own, which links to the one before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from hybrid_runner import Job, Repeat, Runner, Snooze
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage.connections.connection import Connection
from tests.support.recorded import RecordedSpans, attributes_of, ids, recording, traces
from tests.support.traced import PARENT, TRACE, TRACEPARENT
from tests.support.waiting import at_least, until
from tests.support.working import runner, working

ENQUEUE = "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('watch', $1)"


def watching(dsn: str, runs: int) -> Runner:
    """An app whose job snoozes once in each run."""
    app = runner(dsn, Registry())

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Snooze | Repeat | None:
        if not job.snoozes:
            return Snooze("1ms")
        done = (job.data or 0) + 1
        return Repeat("10ms", data=done) if done < runs else None

    return app


async def test_the_trace_of_a_run_ends_and_that_of_the_next_links_to_it(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    await database.execute(ENQUEUE, TRACEPARENT)
    async with working(watching(dsn, 3)) as worker:
        await worker.settled(3)
        await worker.idle()
    roots = recorded.named("job watch")
    assert len(traces(roots)) == 3
    first, second, third = roots
    assert ids(first)[0] == TRACE
    assert first.parent is not None
    assert first.parent.span_id == PARENT
    assert (second.parent, third.parent) == (None, None)
    assert {root.status.status_code for root in roots} == {StatusCode.OK}
    run = ["wait default", "run watch", "delay watch", "wait default", "run watch"]
    assert [recorded.children(root) for root in roots] == [
        run,
        ["delay watch", *run],
        ["delay watch", *run],
    ]
    delays = [
        span
        for span in recorded.named("delay watch")
        if attributes_of(span)["hybrid_runner.delay.why"] == "repeat"
    ]
    links = [[(each.context.trace_id, each.context.span_id) for each in d.links] for d in delays]
    assert links == [[ids(first)], [ids(second)]]


async def test_a_run_begins_when_the_one_before_ended(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    """Not when the row was made, which may be months ago."""
    await database.execute(ENQUEUE, None)
    await database.execute(
        "UPDATE hybrid_runner.jobs SET created_at = '2020-01-01', run_at = '2020-01-01'"
    )
    async with working(watching(dsn, 3)) as worker:
        await worker.settled(3)
        await worker.idle()
    first, second, third = recorded.named("job watch")
    assert first.start_time == datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1e9
    for before, after in ((first, second), (second, third)):
        assert (before.start_time or 0) < (after.start_time or 0) < (before.end_time or 0) + 1e9
    assert (second.start_time or 0) > datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1e9


async def test_each_run_is_sampled_by_itself(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a job that recurs for ever would be traced always, or never."""
    with recording(monkeypatch, ParentBased(TraceIdRatioBased(0.5))) as recorded:
        await database.execute(ENQUEUE, None)
        async with working(watching(dsn, 40)) as worker:
            await worker.settled(40)
            await worker.idle()
        assert 1 <= len(recorded.named("job watch")) <= 39


async def test_an_application_that_samples_nothing_records_no_run(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(monkeypatch, ALWAYS_OFF) as recorded:
        await database.execute(ENQUEUE, TRACEPARENT)
        async with working(watching(dsn, 3)) as worker:
            await worker.settled(3)
            await worker.idle()
        assert recorded.all == []


async def test_a_worker_without_tracing_gives_each_run_a_trace_sampled_as_the_one_before(
    dsn: str, database: Connection
) -> None:
    """In a fleet of which others record spans, two runs would have one span between them."""
    await database.execute(ENQUEUE, TRACEPARENT)
    app = runner(dsn, Registry())
    seen = list[str | None]()

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Repeat:
        seen.append(job.traceparent)
        return Repeat("1ms" if len(seen) < 3 else "1h")

    async with working(app):
        await until(lambda: len(seen), at_least(3))
    assert seen[0] == TRACEPARENT
    assert len({(each or "")[3:35] for each in seen}) == 3
    assert {(each or "")[-3:] for each in seen} == {"-01"}


async def test_without_any_tracing_nothing_is_written(dsn: str, database: Connection) -> None:
    await database.execute(ENQUEUE, None)
    async with working(watching(dsn, 3)) as worker:
        await worker.settled(3)
    assert await database.fetchval("SELECT traceparent FROM hybrid_runner.archive") is None
