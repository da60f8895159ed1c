"""Tracing for the worker, as it is without a tracer provider: no spans are recorded, and the trace
that came with a job is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context

from opentelemetry import trace

from hybrid_runner.model.claims import CancelledInQueue, Claim
from hybrid_runner.model.events import Observer
from hybrid_runner.model.outcomes import Outcome
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.telemetry.observers import harmless
from hybrid_runner.telemetry.tracing.current import context_for_jobs
from hybrid_runner.telemetry.tracing.publish_span import has_tracer_provider
from hybrid_runner.telemetry.tracing.spans import RunSpan
from hybrid_runner.telemetry.tracing.trace_ids import TraceContext, next_run, parse


class Tracing(Observer):
    """Observes one worker, and gives each attempt its span."""

    on = False
    """Whether spans are recorded."""

    def __init__(self, worker_id: Callable[[], str]) -> None:
        self._worker_id = worker_id

    def context(self) -> Context:
        """The context to run handlers in, before their attempt's span is current."""
        return context_for_jobs(decided=self.on)

    def room_for_ends(self) -> int:
        """How many jobs `on_cancelled` can record now. May be called from any thread."""
        return 0

    def on_cancelled(self, _jobs: Iterable[CancelledInQueue]) -> list[int]:
        """Jobs were cancelled while they waited, so no worker saw their end. Returns the ids of
        those whose spans found no room: to be reported again.
        """
        return []

    def traceparents_of(self, _batch: Sequence[Requeued]) -> list[str | None] | None:
        """What to write into the rows of jobs that are put back, so that the next attempt is in the
        same trace with the same sampling decision; None: nothing.
        """
        return None

    @harmless
    def traceparents_of_next_runs(self, batch: Sequence[Repeated]) -> list[str | None] | None:
        """What to write into the rows of jobs that are repeated: each run has a trace of its own,
        sampled as the one before; None: nobody traces them.
        """
        return _unless_none([self._next_traceparent(repeated.claim) for repeated in batch])

    def _next_traceparent(self, claim: Claim) -> str | None:
        before = parse(claim.traceparent)
        if before is None:
            return None
        own = next_run(claim, claim.server_time(claim.ended))
        return str(TraceContext(own.trace_id, own.root_id, before.sampled))

    def traceparents_after(self, _batch: Sequence[Finished | Repeated]) -> list[str | None] | None:
        """What to write into the rows of the jobs that follow these, so that they are in the same
        trace; None: what stands in the row of the job that they follow.
        """
        return None

    def start_run(self, _claim: Claim) -> RunSpan | None:
        """The span of one attempt of a sampled job, current while its handler runs."""
        return None

    def end_run(self, span: RunSpan, outcome: Outcome, settlement: Settlement) -> None:
        """End the span of an attempt with its outcome."""


def _unless_none(traceparents: list[str | None]) -> list[str | None] | None:
    return traceparents if any(traceparents) else None


def make_tracing(worker_id: Callable[[], str]) -> Tracing:
    """Tracing with the tracer provider that this process has now."""
    if not has_tracer_provider():
        return Tracing(worker_id)
    from opentelemetry.sdk.trace import Tracer  # noqa: PLC0415  # the SDK is slow to import

    from hybrid_runner.telemetry.tracing.span_tracing import SpanTracing  # noqa: PLC0415  # imports the SDK

    tracer = trace.get_tracer_provider().get_tracer("hybrid_runner")
    return SpanTracing(worker_id, tracer) if isinstance(tracer, Tracer) else Tracing(worker_id)
