"""Draws what happens to sampled jobs as spans: each job's in one trace, over all its attempts and
workers.
"""

from __future__ import annotations

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
    Happening,
    Recorded,
    RunSpan,
    Value,
    new_span_id,
    new_trace_id,
    readable,
)
from hybrid_runner.telemetry.tracing.trace_ids import Context as Parsed
from hybrid_runner.telemetry.tracing.trace_ids import trace_of
from hybrid_runner.telemetry.tracing.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, Tracer

_QUEUE = attrgetter("claim.queue")
_LONGEST_TEXT = 1024


class SpanTracing(Tracing):
    """For a provider of the SDK; jobs that are not sampled cost a comparison."""

    on = True

    def __init__(self, worker_id: Callable[[], str], tracer: Tracer) -> None:
        super().__init__(worker_id)
        self._sampling = Sampling(tracer.sampler)
        self._send = sender(tracer)
        self._followed = 0

    # --- as an observer

    def on_look(self, look: LookMade) -> None:
        """The wait of each sampled job is over; the claim is one span for all, in a trace of its
        own.
        """
        if not look.claims:
            return
        picked = self._sampling.picks(look.claims)
        if not picked:
            return
        self._followed += len(picked)
        batch = new_trace_id(), new_span_id()
        for claim in picked:
            claim.trace = trace_of(claim)
            self._send(self._wait(claim, claim.trace, look.way, batch))
        how: dict[str, Value] = {
            "hybrid_runner.way": look.way,
            "hybrid_runner.slots": look.asked,
            "hybrid_runner.swept": look.swept,
        }
        count = len(look.claims)
        self._send_batch(
            "claim", "receive", look.queue, picked, count, look.began, look.ended, batch, how
        )

    def on_settled(self, batch: BatchSettled) -> None:
        """Delays and ends of sampled jobs; the write is one span for all of a queue."""
        if not self._followed:
            return
        sampled = [s for s in batch.settled if s.claim.trace is not None]
        self._followed -= len(sampled) + sum(s.claim.trace is not None for s in batch.stale)
        if not sampled:
            return
        began, ended = _wall(batch.began), _wall(batch.ended)
        for settlement in sampled:  # a delay is counted by the database, from between the two
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
        """The same for jobs of lost workers."""
        for settlement in settled:
            if self._sampling.picked(settlement.claim):
                settlement.claim.trace = trace_of(settlement.claim)
                now = time.time_ns()
                self._send_settlement(settlement, now, now, rescued=True)

    # --- what else happens to jobs

    @harmless
    def kept(self, batch: Sequence[Requeued]) -> list[str | None] | None:
        """What is written down for jobs that go back: their own traces, and what was decided about
        them.
        """
        if all(r.claim.traceparent is not None for r in batch):
            return None
        return [None if r.claim.traceparent is not None else self._begun(r.claim) for r in batch]

    def _begun(self, claim: Claim) -> str:
        own = claim.trace or trace_of(claim)
        # What has run here was decided; a sampler that is asked again may say something else.
        is_sampled = claim.trace is not None or (not claim.began and self._sampling.picked(claim))
        return str(Parsed(own.trace_id, own.root_id, sampled=is_sampled))

    @harmless
    def running(self, claim: Claim) -> RunSpan | None:
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
    def ran(self, span: RunSpan, outcome: Outcome, settlement: Settlement) -> None:
        """What the attempt came to."""
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
        self._send(span.over())

    @harmless
    def ended(self, jobs: Iterable[CancelledInQueue]) -> None:
        """Jobs that ended without a worker: cancelled while they waited."""
        for job in jobs:
            claim = job.claim
            if not self._sampling.picked(claim):
                continue
            own, until = trace_of(claim), _nanoseconds(job.finished_at)
            if (
                not claim.number and claim.run_at < job.finished_at
            ):  # else a worker had it, and died
                self._send(
                    Recorded(
                        f"wait {claim.queue}",
                        SpanKind.INTERNAL,
                        own.trace_id,
                        new_span_id(),
                        own.root_id,
                        _due(claim),
                        until,
                        _of_job(claim),
                    )
                )
            self._send(_root(claim, own, until, job.state, job.error))

    # --- spans

    def _wait(self, claim: Claim, own: JobTrace, way: str, batch: tuple[int, int]) -> Recorded:
        until = _nanoseconds(claim.started_at)
        taken: dict[str, Value] = {
            "hybrid_runner.worker.id": self._worker_id(),
            "hybrid_runner.way": way,
            "hybrid_runner.claim": claim.number,
        }
        return Recorded(
            f"wait {claim.queue}",
            SpanKind.INTERNAL,
            own.trace_id,
            new_span_id(),
            own.root_id,
            min(until, _due(claim)),
            until,
            _of_job(claim),
            (Happening("claimed", until, taken),),
            (batch,),
        )

    def _send_batch(
        self,
        word: str,
        word_type: str,
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
            "messaging.operation.name": word,
            "messaging.operation.type": word_type,
            "messaging.destination.name": queue,
            "messaging.batch.message_count": count,
        }
        links = [
            (claim.trace.trace_id, claim.trace.root_id)
            for claim in sampled[:MOST]
            if claim.trace is not None
        ]
        self._send(
            Recorded(
                f"{word} {queue}",
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


def sender(tracer: Tracer) -> Callable[[Recorded], None]:
    """How our own spans get to the processors of a provider of the SDK."""
    processor: SpanProcessor = tracer.span_processor
    provider = trace.get_tracer_provider()
    if isinstance(provider, Provider):
        return provider.outbox.add
    resource = tracer.resource
    return lambda span: processor.on_end(readable(span, resource))


def _root(
    claim: Claim,
    own: JobTrace,
    until: int,
    state: State,
    error: str | None,
    *,
    rescued: bool = False,
) -> Recorded:
    """The whole job, from its creation to its end, which is an event on it and its status."""
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
    return Recorded(
        f"job {claim.kind}",
        SpanKind.INTERNAL,
        own.trace_id,
        own.root_id,
        own.parent_id,
        began,
        until,
        attributes,
        (Happening("terminal", until, terminal),),
        (),
        status,
        why if state is State.FAILED else None,
    )


def _delay(settlement: Requeued, own: JobTrace, now: int, *, rescued: bool) -> Recorded:
    """From now until it is due again: what was decided, not what came of it."""
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
    return Recorded(
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
    return {  # each costs something in every span
        "messaging.destination.name": claim.queue,
        "messaging.message.id": str(claim.id),
        "hybrid_runner.kind": claim.kind,
    }


def _due(claim: Claim) -> int:
    """When its wait began: who inserts a job that is overdue waits from the insert on."""
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
