"""Carries the W3C trace context from whoever enqueues to the handler that runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hybrid_runner.models import Claim

_tracer = trace.get_tracer("hybrid_runner")
_propagator = TraceContextTextMapPropagator()


def current_traceparent() -> str | None:
    """The caller's trace context as a `traceparent`, if there is one."""
    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get("traceparent")


def traces_go_somewhere() -> bool:
    """Whether this process has a tracer provider; without one a span is nothing but time."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def run_span(claim: Claim) -> Iterator[trace.Span]:
    """The consumer span of one attempt, a child of the job's traceparent; a job without one starts its own trace."""
    parent = _propagator.extract({"traceparent": claim.traceparent}) if claim.traceparent else None
    attributes: dict[str, str | int] = {
        "messaging.system": "hybrid_runner",
        "messaging.destination.name": claim.queue,
        "messaging.message.id": str(claim.id),
        "hybrid_runner.attempt": claim.attempt,
    }
    name = f"run {claim.kind}"
    with _tracer.start_as_current_span(name, context=parent, kind=SpanKind.CONSUMER, attributes=attributes) as span:
        yield span
