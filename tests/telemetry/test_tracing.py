"""F4: every claim, delay and terminal transition of a job in one trace. On a provider that the
application has set up.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.recorded import RecordedSpans, attributes_of, ids, traces
from tests.support.traced import PARENT, TRACE, TRACEPARENT, tasks
from tests.support.waiting import at_least, equals, until, until_fetched
from tests.support.working import outcome, working


async def test_a_job_that_was_inserted_by_sql_is_recorded_from_its_creation_to_its_end(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    async with working(tasks(dsn)) as worker:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('note', $1) RETURNING id",
            TRACEPARENT,
        )
        await worker.settled(1)
        await worker.idle()
    root, run, wait = (
        recorded.one("job note"),
        recorded.one("run note"),
        recorded.one("wait default"),
    )
    assert recorded.names() == [
        "claim default",
        "job note",
        "run note",
        "settle default",
        "wait default",
    ]
    assert traces([root, run, wait]) == {TRACE}
    assert root.parent is not None
    assert root.parent.span_id == PARENT
    assert recorded.children(root) == ["wait default", "run note"]
    assert (root.status.status_code, run.kind) == (StatusCode.OK, SpanKind.CONSUMER)
    assert attributes_of(run)["noted"] is True
    assert attributes_of(run)["messaging.message.id"] == str(job)
    assert (
        attributes_of(run)["hybrid_runner.outcome"],
        attributes_of(run)["messaging.operation.type"],
    ) == (
        "completed",
        "process",
    )
    [end] = root.events
    assert end.name == "terminal"
    assert attributes_of(end)["hybrid_runner.state"] == "completed"


async def test_a_claim_is_a_span_of_its_own_linked_to_its_jobs_and_back(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind) SELECT 'note' FROM generate_series(1, 3)"
    )
    async with working(tasks(dsn), worker_id="worker-7") as worker:
        await worker.settled(3)
        await worker.idle()
    claim, waits, roots = (
        recorded.one("claim default"),
        recorded.named("wait default"),
        recorded.named("job note"),
    )
    assert claim.parent is None
    assert attributes_of(claim)["messaging.batch.message_count"] == 3
    assert attributes_of(claim)["hybrid_runner.way"] == "sweep"
    assert {(link.context.trace_id, link.context.span_id) for link in claim.links} == {
        ids(root) for root in roots
    }
    for wait in waits:
        assert [(link.context.trace_id, link.context.span_id) for link in wait.links] == [
            ids(claim)
        ]
        [event] = wait.events
        assert (event.name, attributes_of(event)["hybrid_runner.worker.id"]) == (
            "claimed",
            "worker-7",
        )
        assert attributes_of(event)["hybrid_runner.way"] == "sweep"
        assert attributes_of(event)["hybrid_runner.claim"] > 0
    assert len(traces([*roots, claim])) == 4


async def test_all_attempts_are_in_one_trace_with_what_delayed_them(
    dsn: str, recorded: RecordedSpans
) -> None:
    async with working(tasks(dsn)):
        await outcome(tasks(dsn), "rest")
        await until(lambda: recorded.named("job rest"))
    root, [snooze, retry] = recorded.one("job rest"), recorded.named("delay rest")
    assert recorded.children(root) == [
        "wait default",
        "run rest",
        "delay rest",
        "wait default",
        "run rest",
        "delay rest",
        "wait default",
        "run rest",
    ]
    publish = recorded.one("publish default")
    assert root.parent is not None
    assert root.parent.span_id == ids(publish)[1]
    assert publish.kind is SpanKind.PRODUCER
    assert (
        attributes_of(publish)["messaging.message.id"]
        == attributes_of(root)["messaging.message.id"]
    )
    for span, why in ((snooze, "snooze"), (retry, "retry")):
        assert attributes_of(span)["hybrid_runner.delay.why"] == why
        assert span.start_time is not None
        assert span.end_time == span.start_time + 10_000_000
    assert "not yet" in str(attributes_of(retry)["hybrid_runner.reason"])


async def test_the_span_of_an_enqueue_says_what_became_of_the_key(
    dsn: str, recorded: RecordedSpans
) -> None:
    async with tasks(dsn) as app:
        for _ in range(2):
            await app.enqueue("note", {}, key="a", queue="one", on_conflict="collect")
        await app.enqueue_many("note", [{}] * 5, key=lambda _: "a", queue="many")
        await app.enqueue_many("note", [{}] * 5, queue="free")
    said = [attributes_of(span)["hybrid_runner.enqueued"] for span in recorded.named("publish one")]
    assert said == ["inserted", "collected"]
    many, free = (attributes_of(recorded.one(f"publish {queue}")) for queue in ("many", "free"))
    assert many["hybrid_runner.enqueued.exists"] == 5
    assert not [name for name in free if name.startswith("hybrid_runner.enqueued")]


async def test_a_job_without_a_trace_has_one_of_its_own_over_all_its_attempts(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    async with working(tasks(dsn)) as worker:
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('rest') RETURNING id"
        )
        await worker.settled(1)
        await worker.idle()
    spans = [
        *recorded.named("wait default"),
        *recorded.named("run rest"),
        *recorded.named("delay rest"),
        recorded.one("job rest"),
    ]
    assert len(spans) == 9
    assert len(traces(spans)) == 1
    assert recorded.one("job rest").parent is None
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
    kind: str, state: str, status: StatusCode, said: str | None, dsn: str, recorded: RecordedSpans
) -> None:
    app = tasks(dsn)
    async with working(app):
        await outcome(app, kind)
    root, run = recorded.one(f"job {kind}"), recorded.one(f"run {kind}")
    assert (root.status.status_code, root.status.description) == (status, said)
    assert attributes_of(root.events[0])["hybrid_runner.state"] == state
    assert attributes_of(run)["hybrid_runner.outcome"] == state
    if kind == "raise":
        assert attributes_of(run)["error.type"] == "ValueError"
        [event] = run.events
        assert "no such thing" in str(attributes_of(event)["exception.stacktrace"])


async def test_a_job_that_is_cancelled_while_it_waits_is_recorded_too_and_once(
    dsn: str, database: Connection, recorded: RecordedSpans
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
    root = recorded.one("job note")
    assert attributes_of(root.events[0])["hybrid_runner.state"] == "cancelled"
    assert "a change of mind" in str(attributes_of(root)["hybrid_runner.reason"])
    assert recorded.children(root) == []  # it was never due


async def test_a_job_that_is_cancelled_while_it_runs_says_why(
    dsn: str, database: Connection, recorded: RecordedSpans
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
    root = recorded.one("job hold")
    assert attributes_of(root.events[0])["hybrid_runner.state"] == "cancelled"
    assert attributes_of(root)["hybrid_runner.reason"] == "Cancel: a change of mind"


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
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    """Nothing of a job is older than its root."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', now() - interval '1 hour')"
    )
    async with working(tasks(dsn)) as worker:
        await worker.settled(1)
        await worker.idle()
    assert recorded.one("wait default").start_time == recorded.one("job note").start_time


async def test_a_job_whose_time_is_up_before_it_runs_has_an_end_and_no_run(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, finish_by) VALUES ('note', now() - interval '1"
        " second')"
    )
    async with working(tasks(dsn)) as worker:
        await worker.settled(1)
        await worker.idle()
    root = recorded.one("job note")
    assert root.status.status_code is StatusCode.ERROR
    assert "finish_by" in (root.status.description or "")
    assert recorded.children(root) == ["wait default"]


async def test_a_job_of_a_dead_worker_goes_on_in_its_trace_and_says_why(
    dsn: str, database: Connection, recorded: RecordedSpans
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
        await until(lambda: len(recorded.named("job note")), at_least(2))
        await worker.idle()
    completed, failed = sorted(
        recorded.named("job note"), key=lambda root: str(attributes_of(root)["hybrid_runner.state"])
    )
    assert (ids(completed)[0], attributes_of(failed)["hybrid_runner.rescued"]) == (TRACE, True)
    assert recorded.children(completed) == ["delay note", "wait default", "run note"]
    assert attributes_of(recorded.one("delay note"))["hybrid_runner.delay.why"] == "rescue"
    assert recorded.children(failed) == []
    assert "long gone" in (failed.status.description or "")
