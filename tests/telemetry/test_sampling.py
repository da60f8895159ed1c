"""F4: whether a job is traced is decided once, and holds for all its attempts and workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)

from hybrid_runner import Job, Snooze
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.tracing.trace_ids import low_half
from tests.support.recorded import attributes_of, recording, traces
from tests.support.traced import TRACE, TRACEPARENT, tasks
from tests.support.waiting import until_fetched
from tests.support.working import working


async def test_what_is_not_sampled_leaves_no_span_and_still_passes_its_context_on(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    app, seen = tasks(dsn), list[trace.SpanContext]()

    @app.job("look")
    async def look(_: Any) -> None:
        seen.append(trace.get_current_span().get_span_context())
        with trace.get_tracer("tests").start_as_current_span("inside") as span:
            assert not span.is_recording()

    with recording(monkeypatch, ParentBased(ALWAYS_OFF)) as recorded:
        async with working(app) as worker:
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('look', $1), ('look',"
                " NULL), ('look', 'nonsense')",
                TRACEPARENT[:-1] + "0",
            )
            await app.enqueue("follow")
            await worker.settled(5)
            await worker.idle()
        assert recorded.all == []
    assert seen[0].trace_id == TRACE
    assert all(context.is_valid and not context.trace_flags.sampled for context in seen)
    assert len({context.trace_id for context in seen}) == 3
    flags = {
        row[0]
        for row in await database.fetch(
            "SELECT right(traceparent, 2) FROM hybrid_runner.archive WHERE kind = 'note'"
        )
    }
    assert flags == {"00"}


async def test_the_decision_is_made_once_and_kept_over_all_attempts(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    """By another worker too, whose sampler would decide otherwise."""
    app = tasks(dsn)
    with recording(monkeypatch, ParentBased(TraceIdRatioBased(0.5))) as recorded:
        async with working(app) as worker:
            rows = await database.fetch(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'rest' FROM generate_series(1, 20)"
                " RETURNING id"
            )
            await worker.settled(20)
            await worker.idle()
        sampled = {job for [job] in rows if low_half(job) < 2**63}
        assert {
            int(str(attributes_of(root)["messaging.message.id"]))
            for root in recorded.named("job rest")
        } == sampled
        assert 8 <= len(sampled) <= 12
        assert len(recorded.named("run rest")) == 3 * len(sampled)
    kept = {
        row[0]: row[1]
        for row in await database.fetch(
            "SELECT id, right(traceparent, 2) FROM hybrid_runner.archive"
        )
    }
    assert kept == {job: "01" if job in sampled else "00" for [job] in rows}


@pytest.mark.parametrize("way", [lambda root: root, ParentBased], ids=["alone", "parent based"])
async def test_another_worker_goes_on_with_what_was_decided_whatever_its_own_sampler_says(
    way: Callable[[Sampler], Sampler],
    monkeypatch: pytest.MonkeyPatch,
    dsn: str,
    database: Connection,
) -> None:
    app = tasks(dsn)

    @app.job("nap")
    async def nap(_: Any, job: Job) -> Snooze | None:
        return Snooze("1h", data=1) if job.data is None else None

    with recording(monkeypatch, way(TraceIdRatioBased(0.5))) as first:
        async with working(app):
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'nap' FROM generate_series(1, 20)"
            )
            await until_fetched(
                database,
                "SELECT count(*) FROM hybrid_runner.jobs WHERE data IS NULL OR state = 'running'",
                0,
            )
        recorded_first = traces(first.named("run nap"))
    assert 8 <= len(recorded_first) <= 12
    await database.execute("SELECT hybrid_runner.retry(id) FROM hybrid_runner.jobs")
    with recording(monkeypatch, way(ALWAYS_ON)) as second:
        async with working(app) as worker:
            await worker.settled(20)
            await worker.idle()
        assert traces(second.named("run nap")) == traces(second.named("job nap")) == recorded_first


class Fickle(Sampler):
    """Of the application's own: it says no once, and yes from then on."""

    asked = 0

    def should_sample(self, *_args: Any, **_more: Any) -> SamplingResult:
        self.asked += 1
        return SamplingResult(Decision.DROP if self.asked == 1 else Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        return "Fickle"


async def test_a_sampler_is_asked_once_for_a_job_whatever_it_would_say_later(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    fickle = Fickle()
    with recording(monkeypatch, ParentBased(fickle)) as recorded:
        async with working(tasks(dsn)) as worker:
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('rest')")
            await worker.settled(1)
            await worker.idle()
        assert (fickle.asked, recorded.all) == (1, [])
    assert str(await database.fetchval("SELECT traceparent FROM hybrid_runner.archive")).endswith(
        "-00"
    )
