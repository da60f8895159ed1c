"""F4: every claim, delay and terminal transition of a job in one trace. On a provider that the
application has set up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
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
from opentelemetry.trace import SpanKind, StatusCode

from hybrid_runner import Job, Snooze
from hybrid_runner.storage.connections.connections import Connection
from hybrid_runner.telemetry.tracing.trace_ids import low_half
from tests.support import inside
from tests.support.recorded import Drawn, drawing, ids, told, traces
from tests.support.traced import PARENT, TRACE, TRACEPARENT, tasks
from tests.support.waiting import at_least, equals, until, until_fetched
from tests.support.working import outcome, working


async def test_a_job_that_was_inserted_by_sql_is_drawn_from_its_creation_to_its_end(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    async with working(tasks(dsn)) as worker:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('note', $1) RETURNING id",
            TRACEPARENT,
        )
        await worker.settled(1)
        await worker.idle()
    root, run, wait = drawn.one("job note"), drawn.one("run note"), drawn.one("wait default")
    assert drawn.names() == [
        "claim default",
        "job note",
        "run note",
        "settle default",
        "wait default",
    ]
    assert traces([root, run, wait]) == {TRACE}
    assert root.parent is not None
    assert root.parent.span_id == PARENT
    assert drawn.children(root) == ["wait default", "run note"]
    assert (root.status.status_code, run.kind) == (StatusCode.OK, SpanKind.CONSUMER)
    assert told(run)["noted"] is True
    assert told(run)["messaging.message.id"] == str(job)
    assert (told(run)["hybrid_runner.outcome"], told(run)["messaging.operation.type"]) == (
        "completed",
        "process",
    )
    [end] = root.events
    assert end.name == "terminal"
    assert told(end)["hybrid_runner.state"] == "completed"


async def test_a_claim_is_a_span_of_its_own_linked_to_its_jobs_and_back(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind) SELECT 'note' FROM generate_series(1, 3)"
    )
    async with working(tasks(dsn), worker_id="worker-7") as worker:
        await worker.settled(3)
        await worker.idle()
    claim, waits, roots = (
        drawn.one("claim default"),
        drawn.named("wait default"),
        drawn.named("job note"),
    )
    assert claim.parent is None
    assert told(claim)["messaging.batch.message_count"] == 3
    assert told(claim)["hybrid_runner.way"] == "sweep"
    assert {(link.context.trace_id, link.context.span_id) for link in claim.links} == {
        ids(root) for root in roots
    }
    for wait in waits:
        assert [(link.context.trace_id, link.context.span_id) for link in wait.links] == [
            ids(claim)
        ]
        [event] = wait.events
        assert (event.name, told(event)["hybrid_runner.worker.id"]) == ("claimed", "worker-7")
        assert told(event)["hybrid_runner.way"] == "sweep"
        assert told(event)["hybrid_runner.claim"] > 0
    assert len(traces([*roots, claim])) == 4


async def test_all_attempts_are_in_one_trace_with_what_delayed_them(dsn: str, drawn: Drawn) -> None:
    async with working(tasks(dsn)):
        await outcome(tasks(dsn), "rest")
        await until(lambda: drawn.named("job rest"))
    root, [snooze, retry] = drawn.one("job rest"), drawn.named("delay rest")
    assert drawn.children(root) == [
        "wait default",
        "run rest",
        "delay rest",
        "wait default",
        "run rest",
        "delay rest",
        "wait default",
        "run rest",
    ]
    publish = drawn.one("publish default")
    assert root.parent is not None
    assert root.parent.span_id == ids(publish)[1]
    assert publish.kind is SpanKind.PRODUCER
    assert told(publish)["messaging.message.id"] == told(root)["messaging.message.id"]
    for span, why in ((snooze, "snooze"), (retry, "retry")):
        assert told(span)["hybrid_runner.delay.why"] == why
        assert span.start_time is not None
        assert span.end_time == span.start_time + 10_000_000
    assert "not yet" in str(told(retry)["hybrid_runner.reason"])


async def test_a_job_without_a_trace_has_one_of_its_own_over_all_its_attempts(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    async with working(tasks(dsn)) as worker:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('rest') RETURNING id"
        )
        await worker.settled(1)
        await worker.idle()
    spans = [
        *drawn.named("wait default"),
        *drawn.named("run rest"),
        *drawn.named("delay rest"),
        drawn.one("job rest"),
    ]
    assert len(spans) == 9
    assert len(traces(spans)) == 1
    assert drawn.one("job rest").parent is None
    stored = await database.fetchval(
        "SELECT traceparent FROM hybrid_runner.archive WHERE id = $1", job
    )
    assert stored == f"00-{ids(spans[-1])[0]:032x}-{ids(spans[-1])[1]:016x}-01"


@pytest.mark.parametrize(
    ("kind", "state", "status", "said"),
    [
        ("raise", "failed", StatusCode.ERROR, "ValueError: no such thing"),
        ("refuse", "failed", StatusCode.ERROR, "Fail: not today"),
        ("give_up", "cancelled", StatusCode.UNSET, None),
    ],
)
async def test_how_a_job_ended_is_an_event_and_a_status(
    kind: str, state: str, status: StatusCode, said: str | None, dsn: str, drawn: Drawn
) -> None:
    app = tasks(dsn)
    async with working(app):
        await outcome(app, kind)
    root, run = drawn.one(f"job {kind}"), drawn.one(f"run {kind}")
    assert (root.status.status_code, root.status.description) == (status, said)
    assert told(root.events[0])["hybrid_runner.state"] == state
    assert told(run)["hybrid_runner.outcome"] == state
    if kind == "raise":
        assert told(run)["error.type"] == "ValueError"
        [event] = run.events
        assert "no such thing" in str(told(event)["exception.stacktrace"])


async def test_a_job_that_is_cancelled_while_it_waits_is_drawn_too_and_once(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    """Nobody was there when it ended: two workers, and one of them tells."""
    app = tasks(dsn)
    async with working(app) as worker, app.worker() as other:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', now() + '1 hour')"
            " RETURNING id"
        )
        assert (
            await database.fetchval("SELECT hybrid_runner.cancel($1, 'a change of mind')", job)
            == "cancelled"
        )
        for each in (worker, other):
            inside.beat_soon(each)
        await until(
            lambda: database.fetchval("SELECT count(*) FROM hybrid_runner.unreported_ends"),
            equals(0),
        )
    root = drawn.one("job note")
    assert told(root.events[0])["hybrid_runner.state"] == "cancelled"
    assert "a change of mind" in str(told(root)["hybrid_runner.reason"])
    assert drawn.children(root) == []  # it was never due


async def test_a_job_that_is_cancelled_while_it_runs_says_why(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    """B6"""
    app, began = tasks(dsn), asyncio.Event()

    @app.job("hold")
    async def hold(_: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    async with working(app) as worker:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('hold') RETURNING id"
        )
        await began.wait()
        assert (
            await database.fetchval("SELECT hybrid_runner.cancel($1, 'a change of mind')", job)
            == "requested"
        )
        await worker.settled(1)
        await worker.idle()
    root = drawn.one("job hold")
    assert told(root.events[0])["hybrid_runner.state"] == "cancelled"
    assert told(root)["hybrid_runner.reason"] == "Cancel: a change of mind"


async def test_a_worker_without_tracing_leaves_unreported_ends_to_others_for_a_minute(
    dsn: str, database: Connection
) -> None:
    async with working(tasks(dsn)) as worker:
        for age in ("0 s", "2 minutes"):
            job = await database.fetchval(
                "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', now() + '1 hour')"
                " RETURNING id"
            )
            await database.execute("SELECT hybrid_runner.cancel($1)", job)
            await database.execute(
                "UPDATE hybrid_runner.unreported_ends SET ended_at = now() - $2::interval WHERE id"
                " = $1",
                job,
                timedelta(seconds=0 if age == "0 s" else 120),
            )
        inside.beat_soon(worker)
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.unreported_ends", 1)
    assert await database.fetchval(
        "SELECT ended_at > now() - interval '1 minute' FROM hybrid_runner.unreported_ends"
    )


async def test_a_job_that_was_overdue_when_it_was_inserted_waits_from_then_on(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    """Nothing of a job is older than its root."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', now() - interval '1 hour')"
    )
    async with working(tasks(dsn)) as worker:
        await worker.settled(1)
        await worker.idle()
    assert drawn.one("wait default").start_time == drawn.one("job note").start_time


async def test_a_job_whose_time_is_up_before_it_runs_has_an_end_and_no_run(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, finish_by) VALUES ('note', now() - interval '1"
        " second')"
    )
    async with working(tasks(dsn)) as worker:
        await worker.settled(1)
        await worker.idle()
    root = drawn.one("job note")
    assert root.status.status_code is StatusCode.ERROR
    assert "finish_by" in (root.status.description or "")
    assert drawn.children(root) == ["wait default"]


async def test_what_is_not_sampled_leaves_no_span_and_still_passes_its_context_on(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    app, seen = tasks(dsn), list[trace.SpanContext]()

    @app.job("look")
    async def look(_: Any) -> None:
        seen.append(trace.get_current_span().get_span_context())
        with trace.get_tracer("tests").start_as_current_span("inside") as span:
            assert not span.is_recording()

    with drawing(monkeypatch, ParentBased(ALWAYS_OFF)) as drawn:
        async with working(app) as worker:
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('look', $1), ('look',"
                " NULL), ('look', 'nonsense')",
                TRACEPARENT[:-1] + "0",
            )
            await app.enqueue("follow")
            await worker.settled(5)
            await worker.idle()
        assert drawn.all == []
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
    with drawing(monkeypatch, ParentBased(TraceIdRatioBased(0.5))) as drawn:
        async with working(app) as worker:
            rows = await database.fetch(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'rest' FROM generate_series(1, 20)"
                " RETURNING id"
            )
            await worker.settled(20)
            await worker.idle()
        sampled = {job for [job] in rows if low_half(job) < 2**63}
        assert {
            int(str(told(root)["messaging.message.id"])) for root in drawn.named("job rest")
        } == sampled
        assert 8 <= len(sampled) <= 12
        assert len(drawn.named("run rest")) == 3 * len(sampled)
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

    with drawing(monkeypatch, way(TraceIdRatioBased(0.5))) as first:
        async with working(app):
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'nap' FROM generate_series(1, 20)"
            )
            await until_fetched(
                database,
                "SELECT count(*) FROM hybrid_runner.jobs WHERE data IS NULL OR state = 'running'",
                0,
            )
        drawn_first = traces(first.named("run nap"))
    assert 8 <= len(drawn_first) <= 12
    await database.execute("SELECT hybrid_runner.retry(id) FROM hybrid_runner.jobs")
    with drawing(monkeypatch, way(ALWAYS_ON)) as second:
        async with working(app) as worker:
            await worker.settled(20)
            await worker.idle()
        assert traces(second.named("run nap")) == traces(second.named("job nap")) == drawn_first


class Fickle(Sampler):
    """Of the application's own: it says no once, and yes from then on."""

    asked = 0

    def should_sample(
        self,
        parent_context,
        trace_id,
        name,
        kind=None,
        attributes=None,
        links=None,
        trace_state=None,
    ):  # type: ignore[no-untyped-def]
        self.asked += 1
        return SamplingResult(Decision.DROP if self.asked == 1 else Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        return "Fickle"


async def test_a_sampler_is_asked_once_for_a_job_whatever_it_would_say_later(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    fickle = Fickle()
    with drawing(monkeypatch, ParentBased(fickle)) as drawn:
        async with working(tasks(dsn)) as worker:
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('rest')")
            await worker.settled(1)
            await worker.idle()
        assert (fickle.asked, drawn.all) == (1, [])
    assert str(await database.fetchval("SELECT traceparent FROM hybrid_runner.archive")).endswith(
        "-00"
    )


async def test_a_job_of_a_dead_worker_goes_on_in_its_trace_and_says_why(
    dsn: str, database: Connection, drawn: Drawn
) -> None:
    """One with attempts left is delayed by the rescue; one without ends by it, without another
    run.
    """
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, traceparent, max_attempts) VALUES ('note', $1, 5),"
        " ('note', NULL, 1)",
        TRACEPARENT,
    )
    await database.execute(
        "UPDATE hybrid_runner.jobs SET state = 'running', attempt = 1, claim = 1, worker_id = 'long"
        " gone', started_at = now()"
    )
    async with working(tasks(dsn)) as worker:
        await until(lambda: len(drawn.named("job note")), at_least(2))
        await worker.idle()
    completed, failed = sorted(
        drawn.named("job note"), key=lambda root: str(told(root)["hybrid_runner.state"])
    )
    assert (ids(completed)[0], told(failed)["hybrid_runner.rescued"]) == (TRACE, True)
    assert drawn.children(completed) == ["delay note", "wait default", "run note"]
    assert told(drawn.one("delay note"))["hybrid_runner.delay.why"] == "rescue"
    assert drawn.children(failed) == []
    assert "long gone" in (failed.status.description or "")
