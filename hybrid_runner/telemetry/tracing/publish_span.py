"""The producer's side: a span around enqueueing, and its trace for the job to carry on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context as ContextVariables
from contextvars import copy_context

from opentelemetry import trace
from opentelemetry.context import attach
from opentelemetry.trace import SpanKind

from hybrid_runner.telemetry.tracing.current import span_context
from hybrid_runner.telemetry.tracing.trace_ids import Context, parse

_tracer = trace.get_tracer("hybrid_runner")


class Publish:
    """One call that enqueues."""

    def __init__(self, traceparent: str | None, tell: Callable[[str, int | str], None]) -> None:
        self.traceparent = traceparent
        """For the row; None: the job starts a trace of its own."""
        self._tell = tell

    def became(self, ids: Sequence[int], outcome: str = "") -> None:
        """What Postgres made of it."""
        if len(ids) == 1:
            self._tell("messaging.message.id", str(ids[0]))
        if outcome:
            self._tell("hybrid_runner.enqueued", outcome)


@contextmanager
def publishing(queue: str, kind: str, count: int | None = None) -> Iterator[Publish]:
    """The span of one call, `count` jobs at once; many jobs that nobody's trace asked for start one
    each.
    """
    caller = trace.get_current_span().get_span_context()
    if not traces_go_somewhere():
        yield Publish(_traceparent(caller), lambda _name, _value: None)
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
        is_theirs = count is not None and not caller.is_valid
        yield Publish(
            None if is_theirs else _traceparent(span.get_span_context()), span.set_attribute
        )


def current_traceparent() -> str | None:
    """The caller's trace context as a `traceparent`, if there is one."""
    return _traceparent(trace.get_current_span().get_span_context())


def carried_on(traceparent: str | None) -> ContextVariables:
    """Where this trace is the current one: for what runs in another process."""
    variables, context = copy_context(), parse(traceparent)
    if context is not None:
        variables.run(
            attach, trace.set_span_in_context(trace.NonRecordingSpan(span_context(context)))
        )
    return variables


def traces_go_somewhere() -> bool:
    """Whether this process has a tracer provider; without one a span is nothing but time."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _traceparent(context: trace.SpanContext) -> str | None:
    if not context.is_valid:
        return None
    return str(Context(context.trace_id, context.span_id, sampled=context.trace_flags.sampled))
