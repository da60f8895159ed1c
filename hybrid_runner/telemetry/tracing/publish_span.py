"""The producer's side: a span around enqueueing, whose trace the job continues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context

from opentelemetry import trace
from opentelemetry.context import attach
from opentelemetry.trace import SpanKind

from hybrid_runner.model.jobs import Enqueued
from hybrid_runner.telemetry.tracing.current import span_context
from hybrid_runner.telemetry.tracing.trace_ids import TraceContext, parse

_tracer = trace.get_tracer("hybrid_runner")


class PublishSpan:
    """The span of one call that enqueues, and the `traceparent` for the rows."""

    def __init__(
        self, traceparent: str | None, set_attribute: Callable[[str, int | str], None] | None
    ) -> None:
        self.traceparent = traceparent
        """None: each job starts a trace of its own."""
        self._set_attribute = set_attribute

    def set_result(self, enqueued: Sequence[Enqueued]) -> None:
        """Note what became of the jobs: of one which it is, of several how many are not new."""
        note = self._set_attribute
        if note is None:
            return
        match enqueued:
            case [(job_id, answer)]:
                note("messaging.message.id", str(job_id))
                note("hybrid_runner.enqueued", answer)
            case _:
                for answer, count in Counter(job.enqueued for job in enqueued).items():
                    if answer != "inserted":
                        note(f"hybrid_runner.enqueued.{answer}", count)


@contextmanager
def publish_span(queue: str, kind: str, count: int | None = None) -> Iterator[PublishSpan]:
    """A span around one call that enqueues one job, or `count` jobs. Several jobs that are enqueued
    outside of any trace start a trace each.
    """
    caller = trace.get_current_span().get_span_context()
    if not has_tracer_provider():
        yield PublishSpan(_traceparent(caller), None)
        return
    attributes: dict[str, str | int] = {
        "messaging.system": "hybrid_runner",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "hybrid_runner.kind": kind,
    }
    if count is not None:
        attributes["messaging.batch.message_count"] = count
    with _tracer.start_as_current_span(
        f"publish {queue}", kind=SpanKind.PRODUCER, attributes=attributes
    ) as span:
        start_their_own = count is not None and not caller.is_valid
        yield PublishSpan(
            None if start_their_own else _traceparent(span.get_span_context()), span.set_attribute
        )


def current_traceparent() -> str | None:
    """The caller's trace context as a `traceparent`, if there is one."""
    return _traceparent(trace.get_current_span().get_span_context())


def context_with_trace(traceparent: str | None) -> Context:
    """A context in which this trace is the current one, for code that runs in another process."""
    variables, context = copy_context(), parse(traceparent)
    if context is not None:
        variables.run(
            attach, trace.set_span_in_context(trace.NonRecordingSpan(span_context(context)))
        )
    return variables


def has_tracer_provider() -> bool:
    """Whether this process has a tracer provider; without one, spans would only cost time."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _traceparent(context: trace.SpanContext) -> str | None:
    if not context.is_valid:
        return None
    return str(TraceContext(context.trace_id, context.span_id, sampled=context.trace_flags.sampled))
