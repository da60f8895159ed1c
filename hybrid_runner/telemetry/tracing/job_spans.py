"""The spans of a job that are made when something has happened: the whole job, and its delays."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from opentelemetry.trace import SpanKind, StatusCode

from hybrid_runner.jsontext import decode, printable
from hybrid_runner.model.claims import Claim, JobTrace
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Requeued
from hybrid_runner.telemetry.tracing.spans import RecordedSpan, SpanEvent, Value, new_span_id
from hybrid_runner.telemetry.tracing.trace_ids import run_began

_LONGEST_TEXT = 1024


def root_span(
    claim: Claim,
    own: JobTrace,
    until: int,
    state: State,
    error: str | None,
    *,
    rescued: bool = False,
) -> RecordedSpan:
    """The span of the whole job, or of one run of it, from its creation to its end; the final state
    is an event on it and its status.
    """
    created = run_began(claim, own) or claim.created_at
    began = until if created is None else nanoseconds(created)
    why = reason_of(error)
    terminal: dict[str, Value] = {"hybrid_runner.state": state.value}
    if why:
        terminal["hybrid_runner.reason"] = why
    if rescued:
        terminal["hybrid_runner.rescued"] = True
    attributes = of_job(claim) | terminal
    attributes["hybrid_runner.attempt"] = claim.attempt
    if claim.schedule is not None:
        attributes["hybrid_runner.schedule"] = claim.schedule
        if claim.tick is not None:
            attributes["hybrid_runner.tick"] = claim.tick.isoformat()
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


def delay_span(settlement: Requeued, own: JobTrace, now: int, *, rescued: bool) -> RecordedSpan:
    """A delay from now until the job is due again, as decided: it may end earlier."""
    claim, until = (
        settlement.claim,
        now + round(settlement.delay / timedelta(microseconds=1)) * 1000,
    )
    attributes = of_job(claim) | {
        "hybrid_runner.delay.why": "rescue" if rescued else settlement.why,
        "hybrid_runner.delay.until": datetime.fromtimestamp(until / 1e9, UTC).isoformat(),
        "hybrid_runner.attempt": claim.attempt,
        "hybrid_runner.charged": settlement.charged,
    }
    if why := reason_of(settlement.error):
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


def next_run_span(
    claim: Claim, before: JobTrace, own: JobTrace, now: int, delay: timedelta
) -> RecordedSpan:
    """The delay with which the trace of the next run begins; it links to the run before."""
    until = now + round(delay / timedelta(microseconds=1)) * 1000
    attributes = of_job(claim) | {
        "hybrid_runner.delay.why": "repeat",
        "hybrid_runner.delay.until": datetime.fromtimestamp(until / 1e9, UTC).isoformat(),
    }
    return RecordedSpan(
        f"delay {claim.kind}",
        SpanKind.INTERNAL,
        own.trace_id,
        new_span_id(),
        own.root_id,
        now,
        until,
        attributes,
        (),
        ((before.trace_id, before.root_id),),
    )


def of_job(claim: Claim) -> dict[str, Value]:
    attributes: dict[str, Value] = {  # few: each costs something in every span
        "messaging.destination.name": claim.queue,
        "messaging.message.id": str(claim.id),
        "hybrid_runner.kind": claim.kind,
    }
    if claim.source is not None:
        attributes["hybrid_runner.source"] = claim.source
        attributes["hybrid_runner.row"] = claim.row_key or ""
    return attributes


def due(claim: Claim) -> int:
    """When the wait of a job began: a job that is inserted overdue waits from the insert on."""
    return nanoseconds(
        claim.run_at if claim.created_at is None else max(claim.run_at, claim.created_at)
    )


def reason_of(error: str | None) -> str:
    if error is None:
        return ""
    entry = decode(error)
    return printable(f"{entry.get('type')}: {entry.get('message')}", _LONGEST_TEXT)


def wall(monotonic: float) -> int:
    return time.time_ns() - round((time.monotonic() - monotonic) * 1e9)


def nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000
