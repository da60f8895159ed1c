"""Records what happens to sampled jobs as spans: one trace per job, over all its attempts and
workers.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, assert_never

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from hybrid_runner.model.claims import CancelledInQueue, Claim, JobTrace
from hybrid_runner.model.events import BatchSettled, LookMade
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Expired,
    Fail,
    Outcome,
    Raised,
    Refused,
    Repeat,
    Retry,
    RowUnread,
    Snooze,
    Stopped,
)
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement, word_of
from hybrid_runner.secrets import hide
from hybrid_runner.telemetry.observers import harmless
from hybrid_runner.telemetry.tracing.job_spans import (
    delay_span,
    due,
    nanoseconds,
    next_run_span,
    of_job,
    root_span,
    wall,
)
from hybrid_runner.telemetry.tracing.sampling import Sampling
from hybrid_runner.telemetry.tracing.span_queue import Provider
from hybrid_runner.telemetry.tracing.spans import (
    MOST,
    RecordedSpan,
    RunSpan,
    SpanEvent,
    Value,
    new_span_id,
    new_trace_id,
    readable,
)
from hybrid_runner.telemetry.tracing.trace_ids import TraceContext, job_trace, next_run
from hybrid_runner.telemetry.tracing.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, Tracer

_QUEUE = attrgetter("claim.queue")
_SPANS_OF_AN_END = 2
"""Of a job that was cancelled while it waited: its wait, and the whole job."""


class SpanTracing(Tracing):
    """Tracing with a tracer provider of the SDK. A job that is not sampled costs one comparison."""

    on = True

    def __init__(self, worker_id: Callable[[], str], tracer: Tracer) -> None:
        super().__init__(worker_id)
        self._sampling = Sampling(tracer.sampler)
        self._send, self._room = sender(tracer)
        self._followed = 0
        """Sampled jobs that run here."""

    # --- events of the worker

    def on_look(self, look: LookMade) -> None:
        """Record a wait for each sampled job, and one claim for all, in a trace of its own."""
        if not look.claims:
            return
        sampled = self._sampling.sampled(look.claims)
        if not sampled:
            return
        self._followed += len(sampled)
        batch = new_trace_id(), new_span_id()
        for claim in sampled:
            claim.trace = job_trace(claim)
            self._send(self._wait(claim, claim.trace, look.way, batch))
        how: dict[str, Value] = {
            "hybrid_runner.way": look.way,
            "hybrid_runner.slots": look.asked,
            "hybrid_runner.swept": look.swept,
        }
        count = len(look.claims)
        self._send_batch(
            "claim", "receive", look.queue, sampled, count, look.began, look.ended, batch, how
        )

    def on_settled(self, batch: BatchSettled) -> None:
        """Record delays and ends of sampled jobs, and one settle for all of a queue."""
        if not self._followed:
            return
        sampled = [s for s in batch.settled if s.claim.trace is not None]
        self._followed -= len(sampled) + sum(s.claim.trace is not None for s in batch.stale)
        if not sampled:
            return
        began, ended = wall(batch.began), wall(batch.ended)
        for settlement in sampled:  # the database counts a delay from between the two
            self._send_settlement(settlement, began, ended)
        queues = Counter(map(_QUEUE, batch.settled))
        for queue in {s.claim.queue for s in sampled}:
            here = [s.claim for s in sampled if s.claim.queue == queue]
            count = queues[queue]
            self._send_batch(
                "settle",
                "settle",
                queue,
                here,
                count,
                batch.began,
                batch.ended,
                (new_trace_id(), new_span_id()),
            )

    def on_rescued(self, settled: Sequence[Settlement]) -> None:
        """Record delays and ends of sampled jobs whose workers died."""
        for settlement in settled:
            if self._sampling.is_sampled(settlement.claim):
                settlement.claim.trace = job_trace(settlement.claim)
                now = time.time_ns()
                self._send_settlement(settlement, now, now, rescued=True)

    # --- single jobs

    @harmless
    def traceparents_of(self, batch: Sequence[Requeued]) -> list[str | None] | None:
        """What to write into the rows of jobs that are put back: their own traces, with the
        sampling decision.
        """
        if all(r.claim.traceparent is not None for r in batch):
            return None
        return [
            None if r.claim.traceparent is not None else self._own_traceparent(r.claim)
            for r in batch
        ]

    def _next_traceparent(self, claim: Claim) -> str | None:
        own = next_run(claim, claim.server_time(claim.ended))
        sampled = self._sampling.is_run_sampled(claim, own.trace_id)
        claim.next_trace = own if sampled else None
        return str(TraceContext(own.trace_id, own.root_id, sampled))

    @harmless
    def traceparents_after(self, batch: Sequence[Finished | Repeated]) -> list[str | None] | None:
        """What to write into the rows of the jobs that follow these: their traces, below the span
        of the whole job.
        """
        return [self._own_traceparent(s.claim) for s in batch]

    def _own_traceparent(self, claim: Claim) -> str:
        own = claim.trace or job_trace(claim)
        # For a job that ran here this is decided: a sampler may answer differently a second time.
        is_sampled = claim.trace is not None or (
            not claim.began and self._sampling.is_sampled(claim)
        )
        return str(TraceContext(own.trace_id, own.root_id, sampled=is_sampled))

    @harmless
    def start_run(self, claim: Claim) -> RunSpan | None:
        """The span of one attempt of a sampled job, current while its handler runs."""
        assert claim.trace is not None  # noqa: S101  # the caller looks
        attributes = of_job(claim)
        attributes["messaging.system"] = "hybrid_runner"
        attributes["messaging.operation.name"], attributes["messaging.operation.type"] = (
            "run",
            "process",
        )
        attributes["hybrid_runner.attempt"] = claim.attempt
        span = RunSpan(f"run {claim.kind}", claim.trace.trace_id, claim.trace.root_id, attributes)
        if claim.shown is not None:
            about: dict[str, Value] = {"hybrid_runner.table": claim.shown.table}
            span.add_event("row late" if claim.shown.is_late else "row written", about)
        return span

    @harmless
    def end_run(self, span: RunSpan, outcome: Outcome, settlement: Settlement) -> None:
        """End the span of an attempt with its outcome."""
        span.set_attribute("hybrid_runner.outcome", word_of(settlement))
        match outcome:
            case Raised(kind, message, stack):
                span.set_attribute("error.type", kind)
                span.add_event(
                    "exception",
                    {
                        "exception.type": kind,
                        "exception.message": hide(message),
                        "exception.stacktrace": hide(stack),
                    },
                )
                span.set_status(StatusCode.ERROR, f"{kind}: {message}")
            case Fail(reason) | Retry(_, reason) | Refused(_, reason) | RowUnread(reason):
                span.set_status(StatusCode.ERROR, str(reason))
            case Snooze(reason=str(reason)):
                span.add_event("snoozed", {"reason": hide(reason)})
            case Completed() | Snooze() | Repeat() | Cancel() | Expired() | Stopped():
                pass
            case _:
                assert_never(outcome)
        self._send(span.finish())

    def room_for_ends(self) -> int:
        """How many jobs `on_cancelled` can record now."""
        return self._room() // _SPANS_OF_AN_END

    def on_cancelled(self, jobs: Iterable[CancelledInQueue]) -> list[int]:
        """Record waits and ends of sampled jobs that were cancelled while they waited. What cannot
        be recorded at all is logged, and not reported again.
        """
        return [job.claim.id for job in jobs if self._record_end(job) is False]

    @harmless
    def _record_end(self, job: CancelledInQueue) -> bool:
        """False: its spans found no room."""
        claim = job.claim
        if not self._sampling.is_sampled(claim):
            return True
        own, until = job_trace(claim), nanoseconds(job.finished_at)
        root = root_span(claim, own, until, job.state, job.error)
        # With a claim, its worker died: the wait was over before.
        if claim.number or claim.run_at >= job.finished_at:
            return self._send(root)
        wait = RecordedSpan(
            f"wait {claim.queue}",
            SpanKind.INTERNAL,
            own.trace_id,
            new_span_id(),
            own.root_id,
            due(claim),
            until,
            of_job(claim),
        )
        return self._send(wait) and self._send(root)

    # --- spans

    def _wait(self, claim: Claim, own: JobTrace, way: str, batch: tuple[int, int]) -> RecordedSpan:
        until = nanoseconds(claim.started_at)
        about_claim: dict[str, Value] = {
            "hybrid_runner.worker.id": self._worker_id(),
            "hybrid_runner.way": way,
            "hybrid_runner.claim": claim.number,
        }
        return RecordedSpan(
            f"wait {claim.queue}",
            SpanKind.INTERNAL,
            own.trace_id,
            new_span_id(),
            own.root_id,
            min(until, due(claim)),
            until,
            of_job(claim),
            (SpanEvent("claimed", until, about_claim),),
            (batch,),
        )

    def _send_batch(
        self,
        operation: str,
        operation_type: str,
        queue: str,
        sampled: Sequence[Claim],
        count: int,
        began: float,
        ended: float,
        ids: tuple[int, int],
        more: dict[str, Value] | None = None,
    ) -> None:
        attributes: dict[str, Value] = {
            "messaging.system": "hybrid_runner",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation_type,
            "messaging.destination.name": queue,
            "messaging.batch.message_count": count,
        }
        links = [
            (claim.trace.trace_id, claim.trace.root_id)
            for claim in sampled[:MOST]
            if claim.trace is not None
        ]
        self._send(
            RecordedSpan(
                f"{operation} {queue}",
                SpanKind.CLIENT,
                *ids,
                None,
                wall(began),
                wall(ended),
                attributes | (more or {}),
                (),
                links,
            )
        )

    def _send_settlement(
        self, settlement: Settlement, began: int, ended: int, *, rescued: bool = False
    ) -> None:
        claim = settlement.claim
        own = claim.trace
        assert own is not None  # noqa: S101  # the callers look
        match settlement:
            case Finished(state=state, error=error):
                self._send(root_span(claim, own, ended, state, error, rescued=rescued))
            case Requeued():
                self._send(delay_span(settlement, own, began, rescued=rescued))
            case Repeated(delay=delay):
                self._send(root_span(claim, own, ended, State.COMPLETED, None, rescued=rescued))
                if claim.next_trace is not None:
                    self._send(next_run_span(claim, own, claim.next_trace, began, delay))
            case _:
                assert_never(settlement)


def sender(tracer: Tracer) -> tuple[Callable[[RecordedSpan], bool], Callable[[], int]]:
    """The function that takes our own spans, into our queue or to the processors of the SDK, and
    the one that says for how many there is room. Those of the SDK do not say: they take all.
    """
    processor: SpanProcessor = tracer.span_processor
    provider = trace.get_tracer_provider()
    if isinstance(provider, Provider):
        span_queue = provider.span_queue
        return span_queue.add, lambda: span_queue.room
    resource = tracer.resource

    def send(span: RecordedSpan) -> bool:
        processor.on_end(readable(span, resource))
        return True

    return send, lambda: sys.maxsize
