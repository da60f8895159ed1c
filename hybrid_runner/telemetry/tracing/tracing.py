"""Tracing for the worker, as it is without a tracer provider: no spans are recorded, and the trace
that came with a job is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context

from opentelemetry import trace

from hybrid_runner.model.claims import CancelledInQueue, Claim
from hybrid_runner.model.events import Observer
from hybrid_runner.model.outcomes import Outcome, Requeued, Settlement
from hybrid_runner.telemetry.tracing.current import context_for_jobs
from hybrid_runner.telemetry.tracing.publish_span import has_tracer_provider
from hybrid_runner.telemetry.tracing.spans import RunSpan


class Tracing(Observer):
    """Observes one worker, and gives each attempt its span."""

    on = False
    """Whether spans are recorded."""

    def __init__(self, worker_id: Callable[[], str]) -> None:
        self._worker_id = worker_id

    def context(self) -> Context:
        """The context to run handlers in, before their attempt's span is current."""
        return context_for_jobs(decided=self.on)

    def on_cancelled(self, jobs: Iterable[CancelledInQueue]) -> None:
        """Jobs were cancelled while they waited, so no worker saw their end."""

    def traceparents_of(self, _batch: Sequence[Requeued]) -> list[str | None] | None:
        """What to write into the rows of jobs that are put back, so that the next attempt is in the
        same trace with the same sampling decision; None: nothing.
        """
        return None

    def start_run(self, _claim: Claim) -> RunSpan | None:
        """The span of one attempt of a sampled job, current while its handler runs."""
        return None

    def end_run(self, span: RunSpan, outcome: Outcome, settlement: Settlement) -> None:
        """End the span of an attempt with its outcome."""


def make_tracing(worker_id: Callable[[], str]) -> Tracing:
    """Tracing with the tracer provider that this process has now."""
    if not has_tracer_provider():
        return Tracing(worker_id)
    from opentelemetry.sdk.trace import Tracer  # noqa: PLC0415  # the SDK is slow to import

    from hybrid_runner.telemetry.tracing.span_tracing import SpanTracing  # noqa: PLC0415  # imports the SDK

    tracer = trace.get_tracer_provider().get_tracer("hybrid_runner")
    return SpanTracing(worker_id, tracer) if isinstance(tracer, Tracer) else Tracing(worker_id)
