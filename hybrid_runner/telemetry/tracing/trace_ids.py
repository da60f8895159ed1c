"""The trace of a job, computed from its row so that every worker gets the same ids. Pure."""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple

from hybrid_runner.model.claims import Claim, JobTrace

_TRACEPARENT = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL
)
_UNSAMPLED = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00", re.ASCII)
_PAIR = struct.Struct(">qq")
LOW = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: its multiples are spread evenly, so that the same share is
sampled of any run of ids.
"""


class TraceContext(NamedTuple):
    """A parsed `traceparent`."""

    trace_id: int
    span_id: int
    sampled: bool

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"


def parse(traceparent: str | None) -> TraceContext | None:
    """Parse the `traceparent` of a row; None if there is none, or it is not valid."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more):
        return None
    context = TraceContext(int(trace_id, 16), int(span_id, 16), sampled=bool(int(flags, 16) & 1))
    return context if context.trace_id and context.span_id else None


def is_unsampled(traceparent: str | None) -> bool:
    """Whether the `traceparent` says, in its usual form, that the trace is not sampled. Quicker
    than parsing.
    """
    return traceparent is not None and _UNSAMPLED.fullmatch(traceparent) is not None


def job_trace(claim: Claim) -> JobTrace:
    """The trace that the row names, or else one of the job's own, computed from columns that never
    change.
    """
    context = parse(claim.traceparent)
    if context is None:
        trace_id = own_trace_id(claim)
        return JobTrace(trace_id, root_span_id(trace_id, claim.id), None)
    root_id = root_span_id(context.trace_id, claim.id)
    return JobTrace(
        context.trace_id, root_id, None if context.span_id == root_id else context.span_id
    )


def own_trace_id(claim: Claim) -> int:
    """The id of a job's own trace. Its low half is computed from the job's id and alone decides
    about sampling.
    """
    created = claim.run_at if claim.created_at is None else claim.created_at
    return (_hash(_PAIR.pack(round(created.timestamp() * 1e6), claim.id)) or 1) << 64 | low_half(
        claim.id
    )


def next_run(claim: Claim, ended_at: datetime) -> JobTrace:
    """The trace of the run that follows this one of a job that repeats. The high half of its id
    says when it began, in microseconds since 1970: no column does.
    """
    began = max(1, round(ended_at.timestamp() * 1e6))
    before = job_trace(claim).trace_id.to_bytes(16)
    trace_id = began << 64 | _hash(before + _PAIR.pack(claim.id, claim.number))
    return JobTrace(trace_id, root_span_id(trace_id, claim.id), None)


def run_began(claim: Claim, own: JobTrace) -> datetime | None:
    """When this run began, of a job that was repeated; None: it is the first one, or its row says
    something else.
    """
    if claim.traceparent is None or own.parent_id is not None or claim.created_at is None:
        return None
    earliest, latest = (at.timestamp() for at in (claim.created_at, claim.started_at))
    began = (own.trace_id >> 64) / 1e6
    # A worker knows the server's time to some milliseconds.
    if not earliest < began < latest + 1 or own.trace_id == own_trace_id(claim):
        return None
    return datetime.fromtimestamp(min(began, latest), UTC)


def low_half(job_id: int) -> int:
    """The low half of the id of a job's own trace, spread evenly over 64 bits."""
    return job_id * GOLDEN & LOW


def root_span_id(trace_id: int, job_id: int) -> int:
    """The id of the job's root span. Every worker can compute it before the span is sent, at the
    end of the job.
    """
    return _hash(trace_id.to_bytes(16) + job_id.to_bytes(8, signed=True)) or 1


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())
