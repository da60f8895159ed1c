"""The current trace while a job runs that is not recorded, for instrumentation and log lines. One
object serves all jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

from opentelemetry import trace
from opentelemetry.context import attach, detach, set_value
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanContext, TraceFlags

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.tracing.trace_ids import TraceContext, job_trace, parse

_SUPPRESS = "suppress_instrumentation"
"""The key that instrumentations look for in the context."""

current_claim: ContextVar[Claim | None] = ContextVar("hybrid_runner_claim", default=None)
"""The job that runs in this context; log lines from there carry its ids."""


def span_context(context: TraceContext) -> SpanContext:
    """A parsed `traceparent` as OpenTelemetry's type."""
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    return SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=flags)


class UnrecordedSpan(NonRecordingSpan):
    """The current span of all jobs that are not recorded: its ids are those of the job that runs in
    the caller's context.
    """

    def __init__(self, *, decided: bool) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self._decided = decided

    def get_span_context(self) -> SpanContext:
        """The ids of the job; where nobody decides about sampling, those that came with it."""
        claim = current_claim.get()
        if claim is None:
            return INVALID_SPAN_CONTEXT
        if self._decided:
            own = job_trace(claim)
            return SpanContext(
                own.trace_id,
                own.root_id,
                is_remote=False,
                trace_flags=TraceFlags(TraceFlags.DEFAULT),
            )
        context = parse(claim.traceparent)
        if context is None:
            return INVALID_SPAN_CONTEXT
        return span_context(context)


def context_for_jobs(*, decided: bool) -> Context:
    """A context to copy for each job; `decided`: a job that is not recorded was not sampled."""
    context = copy_context()
    context.run(attach, trace.set_span_in_context(UnrecordedSpan(decided=decided)))
    return context


def suppress_instrumentation() -> None:
    """From here on, in this context, an instrumented asyncpg records no spans: for the worker's own
    queries.
    """
    attach(set_value(_SUPPRESS, True))


@contextmanager
def instrumentation_suppressed() -> Iterator[None]:
    """Suppress instrumentation inside a `with` block."""
    token = attach(set_value(_SUPPRESS, True))
    try:
        yield
    finally:
        detach(token)


def context_without_instrumentation() -> Context:
    context = copy_context()
    context.run(suppress_instrumentation)
    return context
