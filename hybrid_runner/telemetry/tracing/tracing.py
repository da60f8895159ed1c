"""The worker's side of tracing, as it is without a provider: nothing is drawn, and what came with a
job is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context

from opentelemetry import trace

from hybrid_runner.model.claims import CancelledInQueue, Claim
from hybrid_runner.model.events import Observer
from hybrid_runner.model.outcomes import Outcome, Requeued, Settlement
from hybrid_runner.telemetry.tracing.current import context_for_jobs
from hybrid_runner.telemetry.tracing.publish_span import traces_go_somewhere
from hybrid_runner.telemetry.tracing.spans import RunSpan


class Tracing(Observer):
    """An observer of one worker."""

    on = False
    """Whether spans go anywhere."""

    def __init__(self, worker_id: Callable[[], str]) -> None:
        self._worker_id = worker_id

    def context(self) -> Context:
        """For the tasks of jobs: what is current in there before a span is."""
        return context_for_jobs(decided=self.on)

    def ended(self, jobs: Iterable[CancelledInQueue]) -> None:
        """Jobs ended without a worker."""

    def kept(self, _batch: Sequence[Requeued]) -> list[str | None] | None:
        """What is written down for jobs that go back: their own traces, and what was decided about
        them.
        """
        return None

    def running(self, _claim: Claim) -> RunSpan | None:
        """The span of one attempt of a sampled job, current while its handler runs."""
        return None

    def ran(self, span: RunSpan, outcome: Outcome, settlement: Settlement) -> None:
        """What the attempt came to."""


def make_tracing(worker_id: Callable[[], str]) -> Tracing:
    """For the provider that this process has now."""
    if not traces_go_somewhere():
        return Tracing(worker_id)
    from opentelemetry.sdk.trace import Tracer  # noqa: PLC0415  # as long as all of us, and seldom needed

    from hybrid_runner.telemetry.tracing.span_tracing import SpanTracing  # noqa: PLC0415  # the same

    tracer = trace.get_tracer_provider().get_tracer("hybrid_runner")
    return SpanTracing(worker_id, tracer) if isinstance(tracer, Tracer) else Tracing(worker_id)
