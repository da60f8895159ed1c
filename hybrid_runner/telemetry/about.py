"""What every log line about a job carries."""

from __future__ import annotations

from hybrid_runner.models import Claim
from hybrid_runner.telemetry.identity import parse
from hybrid_runner.telemetry.log_events import LogEvent, log_event

_SHOWN = 200


def trace_id_of(claim: Claim) -> str | None:
    """The trace that the job belongs to, as 32 hexadecimal digits; None: it came without one, and is in none of its own."""
    if claim.trace is not None:
        return f"{claim.trace.trace_id:032x}"
    context = parse(claim.traceparent)
    return None if context is None else f"{context.trace_id:032x}"


def shorten(text: str) -> str:
    """As much of a payload as a log line can bear."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def about(claim: Claim, name: LogEvent) -> dict[str, object]:
    """For `extra`, in lines from outside the job's handler."""
    fields = log_event(name, job=claim.id, queue=claim.queue, kind=claim.kind)
    if (trace_id := trace_id_of(claim)) is not None:
        fields["trace_id"] = trace_id
    return fields
