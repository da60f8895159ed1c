"""The fields that every log line about a job carries."""

from __future__ import annotations

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.log_events import LogEvent, log_event
from hybrid_runner.telemetry.tracing.trace_ids import parse

_SHOWN = 200


def trace_id_of(claim: Claim) -> str | None:
    """The id of the trace that the job belongs to, as 32 hexadecimal digits; None: the job came
    without a trace and is not sampled.
    """
    if claim.trace is not None:
        return f"{claim.trace.trace_id:032x}"
    context = parse(claim.traceparent)
    return None if context is None else f"{context.trace_id:032x}"


def shorten(text: str) -> str:
    """The beginning of a payload, for a log line."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def job_fields(claim: Claim, name: LogEvent) -> dict[str, object]:
    """For `extra` in log lines about a job from outside its handler."""
    fields = log_event(name, job=claim.id, queue=claim.queue, kind=claim.kind)
    if claim.source is not None:
        fields |= {"source": claim.source, "row": claim.row_key}
    if (trace_id := trace_id_of(claim)) is not None:
        fields["trace_id"] = trace_id
    return fields
