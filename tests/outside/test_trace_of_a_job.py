"""F4: what happened to a job, and why it waited, read back from a real Jaeger behind a real
Collector with the shipped file.
"""

from __future__ import annotations

from pathlib import Path

from hybrid_runner.storage.connections.connection import Connection
from tests.outside.journey import SPANS, travelled
from tests.support.jaeger import Jaeger, Span
from tests.support.opentelemetry_collector import OpenTelemetryCollector


def named(spans: list[Span], name: str) -> list[Span]:
    """By their beginnings."""
    return [span for span in spans if span.name == name]


async def test_a_job_that_sql_inserted_is_followed_over_retry_snooze_and_two_workers_to_its_end(
    dsn: str,
    database: Connection,
    tmp_path: Path,
    jaeger: Jaeger,
    otel_collector: OpenTelemetryCollector,
) -> None:
    journey = await travelled(dsn, database, tmp_path, otel_collector.endpoint, jaeger)
    spans = journey.spans
    assert len(spans) == SPANS
    [root] = named(spans, "job thumbnail")
    waits, runs, delays = (
        named(spans, "wait images"),
        named(spans, "run thumbnail"),
        named(spans, "delay thumbnail"),
    )

    # One tree, under the span whose context the INSERT carried.
    assert root.parent_id == journey.parent_id
    assert {span.parent_id for span in spans if span is not root} == {root.span_id}
    assert {span.trace_id for span in spans} == {journey.trace_id}
    assert {span.attributes["messaging.message.id"] for span in spans} == {str(journey.job)}

    # What happened, in order, and where.
    assert [span.attributes["hybrid_runner.outcome"] for span in runs] == [
        "retry",
        "snooze",
        "release",
        "completed",
    ]
    assert [span.resource["service.instance.id"] for span in runs] == [
        "worker-1",
        "worker-1",
        "worker-1",
        "worker-2",
    ]
    assert [span.attributes["hybrid_runner.attempt"] for span in runs] == [1, 2, 2, 2]
    assert [span.attributes["hybrid_runner.delay.why"] for span in delays] == [
        "retry",
        "snooze",
        "release",
    ]
    assert [(span.end - span.start) // 10**6 for span in delays] == [100, 200, 0]
    assert "the server of the picture hung up" in delays[0].attributes["hybrid_runner.reason"]
    assert [span.kind for span in runs] == ["consumer"] * 4

    # The attempt that failed says so, with its exception; the others did not fail.
    assert [span.status for span in runs] == ["error", "unset", "unset", "unset"]
    [(event, exception)] = runs[0].events
    assert (event, exception["exception.type"]) == ("exception", "ConnectionError")

    # Why it waited: from when it was due to when which worker took it, how.
    for wait, delay, run in zip(waits[1:], delays, runs[1:], strict=True):
        assert (
            abs(wait.start - delay.end) < 5 * 10**9
        )  # two clocks, and whatever a busy machine puts between them
        assert wait.end <= run.start
    claimed = [wait.events[0] for wait in waits]
    assert [(name, attributes["hybrid_runner.worker.id"]) for name, attributes in claimed] == [
        ("claimed", "worker-1"),
        ("claimed", "worker-1"),
        ("claimed", "worker-1"),
        ("claimed", "worker-2"),
    ]
    assert {attributes["hybrid_runner.way"] for _, attributes in claimed} <= {
        "ring",
        "look",
        "timer",
        "sweep",
        "listener",
    }

    # Each claim is a trace of its own, linked from here and to here.
    for wait in waits:
        [(claim_trace, claim_span)] = wait.links
        [claim] = await jaeger.until(claim_trace, lambda found: len(found) == 1)
        assert (claim.name, claim.span_id, claim.attributes["messaging.batch.message_count"]) == (
            "claim images",
            claim_span,
            1,
        )
        assert claim.links == ((journey.trace_id, root.span_id),)

    # How it ended.
    [(event, attributes)] = root.events
    assert (event, attributes["hybrid_runner.state"], root.status) == (
        "terminal",
        "completed",
        "ok",
    )
    assert root.start <= min(span.start for span in spans)
    assert root.end >= max(span.end for span in runs)
