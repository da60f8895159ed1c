"""F4: spans on their way out cost a counter, whatever the collector does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import CONFORM, IntFlag
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanKind, StatusCode

from hybrid_runner.telemetry.tracing.span_queue import (
    LONGEST_PAUSE,
    HashedResource,
    Provider,
    SpanQueue,
)
from hybrid_runner.telemetry.tracing.spans import MOST, RecordedSpan, RunSpan, SpanEvent


class Sink(SpanExporter):
    """Takes what it is given, once it may."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.batches: list[list[str]] = []
        self.spans: list[ReadableSpan] = []
        self.may = threading.Event()
        self.may.set()
        self.got = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.got.set()
        self.may.wait(120)
        if not self.takes:
            return SpanExportResult.FAILURE
        self.batches.append([span.name for span in spans])
        self.spans += spans
        return SpanExportResult.SUCCESS


@contextmanager
def sending(sink: SpanExporter, **environment: str) -> Iterator[SpanQueue]:
    """An span_queue whose thread runs."""
    span_queue = SpanQueue([sink], {"OTEL_BSP_SCHEDULE_DELAY": "3600000"} | environment)
    span_queue.start(Resource({"service.name": "tests"}))
    yield span_queue
    span_queue.shutdown()


class Picky(Sink):
    """Cannot encode some; the others it takes."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if any(span.name == "bad" for span in spans):
            raise ValueError("cannot be encoded")
        return super().export(spans)


def span(name: str = "run note", **more: object) -> RecordedSpan:
    return RecordedSpan(name, SpanKind.INTERNAL, 1, 2, 3, 10, 20, {"a": 1}, **more)  # type: ignore[arg-type]


def test_a_batch_that_is_full_goes_at_once_and_the_rest_at_the_end() -> None:
    sink = Sink()
    with sending(sink, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2") as span_queue:
        for number in range(5):
            span_queue.add(span(str(number)))
        assert sink.got.wait(120)
    assert [name for batch in sink.batches for name in batch] == ["0", "1", "2", "3", "4"]
    assert max(map(len, sink.batches)) == 2
    assert (span_queue.sent, span_queue.dropped) == (5, 0)


def test_what_finds_no_room_is_dropped_and_counted() -> None:
    sink = Sink()
    sink.may.clear()
    with sending(
        sink, OTEL_BSP_MAX_QUEUE_SIZE="4", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2"
    ) as span_queue:
        span_queue.add(span())
        span_queue.add(span())
        assert sink.got.wait(120)  # these two are on their way
        for _ in range(10):
            span_queue.add(span())
        assert span_queue.dropped == 6
        sink.may.set()
    assert span_queue.sent == 6


def test_what_the_collector_does_not_take_is_counted_and_not_kept() -> None:
    with sending(Sink(takes=False)) as span_queue:
        span_queue.add(span())
        assert span_queue.force_flush(10_000)
    assert (span_queue.sent, span_queue.dropped) == (0, 1)


def test_an_exporter_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Raises(Sink):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
            raise OSError("no way")

    with caplog.at_level(logging.ERROR, "hybrid_runner"), sending(Raises()) as span_queue:
        span_queue.add(span())
        assert span_queue.force_flush(10_000)
        span_queue.add(span())
        assert span_queue.force_flush(10_000)
    assert span_queue.dropped == 2


def test_a_broken_exporter_is_asked_once_for_a_batch_and_others_get_it_once() -> None:
    class Broken(Sink):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            super().export(spans)
            raise BrokenPipeError("nobody reads")

    broken, sink = Broken(), Sink()
    span_queue = SpanQueue([broken, sink])
    span_queue.start(Resource({}))
    for _ in range(8):
        span_queue.add(span())
    span_queue.shutdown()
    assert (len(broken.spans), len(sink.spans), span_queue.sent, span_queue.dropped) == (8, 8, 0, 8)


def test_what_one_exporter_cannot_encode_others_get_once() -> None:
    picky, sink = Picky(), Sink()
    span_queue = SpanQueue([picky, sink])
    span_queue.start(Resource({}))
    for name in ("a", "bad", "b", "c"):
        span_queue.add(span(name))
    span_queue.shutdown()
    assert [name for batch in picky.batches for name in batch] == ["a", "b", "c"]
    assert sink.batches == [["a", "bad", "b", "c"]]
    assert (span_queue.sent, span_queue.dropped) == (3, 1)


def test_batches_that_cannot_be_encoded_are_no_refusal() -> None:
    """At the end a refusal drops what still waits."""
    sink = Picky()
    with sending(sink, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1") as span_queue:
        for name in ("bad", "bad", "bad", "good", "good"):
            span_queue.add(span(name))
    assert (span_queue.sent, span_queue.dropped) == (2, 3)


def test_parts_of_a_batch_end_with_the_first_refusal() -> None:
    class Refuses(Picky):
        asked = 0

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            self.takes = False
            result = super().export(spans)
            self.asked += 1
            return result

    sink = Refuses()
    with sending(sink) as span_queue:
        for name in ("a", "b", "c", "d", "e", "f", "g", "bad"):
            span_queue.add(span(name))
    assert (sink.asked, span_queue.sent, span_queue.dropped) == (1, 0, 8)


def test_a_collector_that_was_away_for_a_night_is_asked_again_in_a_while() -> None:
    span_queue = SpanQueue([Sink()])
    span_queue._failures = 5000
    assert span_queue._next_pause() == LONGEST_PAUSE


def test_what_waits_is_sent_without_pauses_once_somebody_waits_for_it() -> None:
    sink = Sink()
    with sending(sink, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1") as span_queue:
        for number in range(5):
            span_queue.add(span(str(number)))
        assert span_queue.force_flush(10_000)
        assert (span_queue.sent, sink.batches) == (5, [["0"], ["1"], ["2"], ["3"], ["4"]])
        span_queue.add(span())  # it goes on after that
        assert span_queue.force_flush(10_000)
        assert span_queue.sent == 6


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_a_limit_that_cannot_be_is_one_line_and_the_usual_one(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    SpanQueue([], {"OTEL_BSP_MAX_QUEUE_SIZE": text})
    [record] = caplog.records
    assert "OTEL_BSP_MAX_QUEUE_SIZE must be a positive whole number" in record.getMessage()


def test_a_span_of_ours_arrives_as_one_of_the_sdk() -> None:
    sink = Sink()
    with sending(sink) as span_queue:
        events, links = (SpanEvent("claimed", 15, {"way": "ring"}),), ((8, 9),)
        span_queue.add(span(events=events, links=links, status=StatusCode.ERROR, description="no"))
    [sent] = sink.spans
    assert sent.context is not None
    assert sent.parent is not None
    assert (sent.context.trace_id, sent.context.span_id, sent.parent.span_id) == (1, 2, 3)
    assert (sent.start_time, sent.end_time, dict(sent.attributes or {})) == (10, 20, {"a": 1})
    assert [
        (event.name, event.timestamp, dict(event.attributes or {})) for event in sent.events
    ] == [("claimed", 15, {"way": "ring"})]
    assert [(link.context.trace_id, link.context.span_id) for link in sent.links] == [(8, 9)]
    assert (sent.status.status_code, sent.status.description) == (StatusCode.ERROR, "no")
    assert (
        sent.resource.attributes["service.name"],
        sent.instrumentation_scope and sent.instrumentation_scope.name,
    ) == (
        "tests",
        "hybrid_runner",
    )


def test_spans_that_instrumentations_make_go_the_same_way() -> None:
    sink = Sink()
    span_queue = SpanQueue([sink], {})
    provider = Provider(Resource({}), span_queue)
    with provider.get_tracer("elsewhere").start_as_current_span("SELECT"):
        pass
    provider.shutdown()
    assert sink.batches == [["SELECT"]]


def test_a_handler_may_do_to_its_span_what_it_likes_within_bounds() -> None:
    run = RunSpan("run note", 1, 2, {"own": True})
    run.set_attributes({f"a{number}": number for number in range(2 * MOST)})
    for number in range(2 * MOST):
        run.add_event(f"e{number}", {"n": number})
    run.record_exception(ValueError("oh"))
    run.update_name("run better")
    run.set_status(StatusCode.OK)
    run.set_status(StatusCode.ERROR, "too late")
    assert run.is_recording()
    run.end()
    assert run.is_recording()  # the attempt ends it
    over = run.finish()
    assert not run.is_recording()
    assert (over.name, len(over.attributes), len(over.events), over.status) == (
        "run better",
        MOST,
        MOST,
        StatusCode.OK,
    )


def test_slips_of_a_handler_are_shown_as_they_can_be_and_never_fail_its_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As with the SDK: a job must not fail because it is sampled."""
    run: Any = RunSpan("run note", 1, 2, {})
    run.set_status(StatusCode.ERROR, ValueError("no such thing"))
    run.update_name(5)
    run.add_event(ValueError("it broke"))
    run.set_attribute(["not", "hashable"], 1)
    run.add_link(None)
    run.add_link(INVALID_SPAN_CONTEXT)
    run.add_event("odd", ["no", "mapping"])
    run.set_attributes(7)
    over = run.finish()
    assert (over.name, over.description, over.attributes) == (
        "5",
        "no such thing",
        {"['not', 'hashable']": 1},
    )
    assert ([event.name for event in over.events], over.links) == (["it broke"], [])
    assert {record.levelname for record in caplog.records} <= {"ERROR"}


def test_numbers_of_a_handler_are_such_that_can_be_sent() -> None:
    class Flags(IntFlag, boundary=CONFORM):
        A = 1
        B = 256

    run = RunSpan("run note", 1, 2, {})
    run.set_attributes(
        {
            "huge": 2**63,
            "least": -(2**63),
            "flags": Flags.A | Flags.B,
            "yes": True,
            "some": [1, 2**64],
        }
    )
    attributes = run.finish().attributes
    assert attributes == {"least": -(2**63), "flags": 257, "yes": True, "some": [1]}
    assert {name: type(value) for name, value in attributes.items()} == {
        "least": int,
        "flags": int,
        "yes": bool,
        "some": list,
    }


def test_where_spans_come_from_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters group spans by it."""
    plain = Resource({"service.name": "tests"})
    resource_bytes = HashedResource(plain)
    monkeypatch.setattr(Resource, "__hash__", lambda _: pytest.fail("computed again"))
    assert {resource_bytes: 1}[resource_bytes] == 1
    assert resource_bytes == Resource({"service.name": "tests"})
    assert dict(resource_bytes.attributes) == dict(plain.attributes)
