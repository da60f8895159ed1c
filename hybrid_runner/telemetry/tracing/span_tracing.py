"""Records what happens to sampled jobs as spans: one trace per job, over all its attempts and
workers.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, assert_never

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from hybrid_runner.jsontext import decode, printable
from hybrid_runner.model.claims import CancelledInQueue, Claim, JobTrace
from hybrid_runner.model.events import BatchSettled, LookMade
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Fail,
    Finished,
    Outcome,
    Raised,
    Refused,
    Requeued,
    Retry,
    Settlement,
    Snooze,
    Stopped,
    word_of,
)
from hybrid_runner.telemetry.observers import harmless
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
from hybrid_runner.telemetry.tracing.trace_ids import TraceContext, job_trace
from hybrid_runner.telemetry.tracing.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, Tracer

_QUEUE = attrgetter("claim.queue")
_LONGEST_TEXT = 1024
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
        began, ended = _wall(batch.began), _wall(batch.ended)
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
        attributes = _of_job(claim)
        attributes["messaging.system"] = "hybrid_runner"
        attributes["messaging.operation.name"], attributes["messaging.operation.type"] = (
            "run",
            "process",
        )
        attributes["hybrid_runner.attempt"] = claim.attempt
        return RunSpan(f"run {claim.kind}", claim.trace.trace_id, claim.trace.root_id, attributes)

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
                        "exception.message": message,
                        "exception.stacktrace": stack,
                    },
                )
                span.set_status(StatusCode.ERROR, f"{kind}: {message}")
            case Fail(reason) | Retry(_, reason) | Refused(_, reason):
                span.set_status(StatusCode.ERROR, str(reason))
            case Completed() | Snooze() | Cancel() | Stopped():
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
        own, until = job_trace(claim), _nanoseconds(job.finished_at)
        root = _root(claim, own, until, job.state, job.error)
        # With a claim, its worker died: the wait was over before.
        if claim.number or claim.run_at >= job.finished_at:
            return self._send(root)
        wait = RecordedSpan(
            f"wait {claim.queue}",
            SpanKind.INTERNAL,
            own.trace_id,
            new_span_id(),
            own.root_id,
            _due(claim),
            until,
            _of_job(claim),
        )
        return self._send(wait) and self._send(root)

    # --- spans

    def _wait(self, claim: Claim, own: JobTrace, way: str, batch: tuple[int, int]) -> RecordedSpan:
        until = _nanoseconds(claim.started_at)
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
            min(until, _due(claim)),
            until,
            _of_job(claim),
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
                _wall(began),
                _wall(ended),
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
                self._send(_root(claim, own, ended, state, error, rescued=rescued))
            case Requeued():
                self._send(_delay(settlement, own, began, rescued=rescued))
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


def _root(
    claim: Claim,
    own: JobTrace,
    until: int,
    state: State,
    error: str | None,
    *,
    rescued: bool = False,
) -> RecordedSpan:
    """The span of the whole job, from its creation to its end; the final state is an event on it
    and its status.
    """
    began = until if claim.created_at is None else _nanoseconds(claim.created_at)
    why = _reason(error)
    terminal: dict[str, Value] = {"hybrid_runner.state": state.value}
    if why:
        terminal["hybrid_runner.reason"] = why
    if rescued:
        terminal["hybrid_runner.rescued"] = True
    attributes = _of_job(claim) | terminal
    attributes["hybrid_runner.attempt"] = claim.attempt
    status = {State.COMPLETED: StatusCode.OK, State.FAILED: StatusCode.ERROR}.get(
        state, StatusCode.UNSET
    )
    return RecordedSpan(
        f"job {claim.kind}",
        SpanKind.INTERNAL,
        own.trace_id,
        own.root_id,
        own.parent_id,
        began,
        until,
        attributes,
        (SpanEvent("terminal", until, terminal),),
        (),
        status,
        why if state is State.FAILED else None,
    )


def _delay(settlement: Requeued, own: JobTrace, now: int, *, rescued: bool) -> RecordedSpan:
    """A delay from now until the job is due again, as decided: it may end earlier."""
    claim, until = (
        settlement.claim,
        now + round(settlement.delay / timedelta(microseconds=1)) * 1000,
    )
    attributes = _of_job(claim) | {
        "hybrid_runner.delay.why": "rescue" if rescued else settlement.why,
        "hybrid_runner.delay.until": datetime.fromtimestamp(until / 1e9, UTC).isoformat(),
        "hybrid_runner.attempt": claim.attempt,
        "hybrid_runner.charged": settlement.charged,
    }
    if why := _reason(settlement.error):
        attributes["hybrid_runner.reason"] = why
    return RecordedSpan(
        f"delay {claim.kind}",
        SpanKind.INTERNAL,
        own.trace_id,
        new_span_id(),
        own.root_id,
        now,
        until,
        attributes,
    )


def _of_job(claim: Claim) -> dict[str, Value]:
    return {  # few: each costs something in every span
        "messaging.destination.name": claim.queue,
        "messaging.message.id": str(claim.id),
        "hybrid_runner.kind": claim.kind,
    }


def _due(claim: Claim) -> int:
    """When the wait of a job began: a job that is inserted overdue waits from the insert on."""
    return _nanoseconds(
        claim.run_at if claim.created_at is None else max(claim.run_at, claim.created_at)
    )


def _reason(error: str | None) -> str:
    if error is None:
        return ""
    entry = decode(error)
    return printable(f"{entry.get('type')}: {entry.get('message')}", _LONGEST_TEXT)


def _wall(monotonic: float) -> int:
    return time.time_ns() - round((time.monotonic() - monotonic) * 1e9)


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000
