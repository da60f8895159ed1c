"""What instrumentation and logs find as the current trace while a job runs that is not recorded: no
object per job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

from opentelemetry import trace
from opentelemetry.context import attach, detach, set_value
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanContext, TraceFlags

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.tracing.trace_ids import Context as Parsed
from hybrid_runner.telemetry.tracing.trace_ids import parse, trace_of

_SUPPRESS = "suppress_instrumentation"
"""What instrumentations look for in the context."""

current_claim: ContextVar[Claim | None] = ContextVar("hybrid_runner_claim", default=None)
"""What is being worked on in this context; lines that are logged there carry its ids."""


def span_context(parsed: Parsed) -> SpanContext:
    """A `traceparent` that came from elsewhere, as OpenTelemetry has it."""
    flags = TraceFlags(TraceFlags.SAMPLED if parsed.sampled else TraceFlags.DEFAULT)
    return SpanContext(parsed.trace_id, parsed.span_id, is_remote=True, trace_flags=flags)


class Unrecorded(NonRecordingSpan):
    """One for all jobs: whoever asks for the context gets that of the job that runs there."""

    def __init__(self, *, decided: bool) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self._decided = decided

    def get_span_context(self) -> SpanContext:
        """Of the job; where nobody decides about sampling, it is passed on as it came."""
        claim = current_claim.get()
        if claim is None:
            return INVALID_SPAN_CONTEXT
        if self._decided:
            own = trace_of(claim)
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
    """A context to copy for each job; `decided`: what is not recorded was not sampled."""
    context = copy_context()
    context.run(attach, trace.set_span_in_context(Unrecorded(decided=decided)))
    return context


def be_quiet() -> None:
    """From here on, in this context: an instrumented asyncpg must not draw what the worker asks for
    itself.
    """
    attach(set_value(_SUPPRESS, True))


@contextmanager
def hushed() -> Iterator[None]:
    """The same for some statements of a context that goes on otherwise."""
    token = attach(set_value(_SUPPRESS, True))
    try:
        yield
    finally:
        detach(token)


def quiet() -> Context:
    """A context for tasks that do so."""
    context = copy_context()
    context.run(be_quiet)
    return context
