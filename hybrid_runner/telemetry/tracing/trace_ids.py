"""Which trace a job belongs to, so that every worker that meets it comes to the same answer.
Pure.
"""

from __future__ import annotations

import re
import struct
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
"""2^64 divided by the golden ratio: multiples of it are spread evenly, so that of any run of ids
the same share is sampled.
"""


class Context(NamedTuple):
    """A parsed `traceparent`."""

    trace_id: int
    span_id: int
    sampled: bool

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"


def parse(traceparent: str | None) -> Context | None:
    """What a row says; None if it says nothing, or nothing that can be understood."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more):
        return None
    context = Context(int(trace_id, 16), int(span_id, 16), sampled=bool(int(flags, 16) & 1))
    return context if context.trace_id and context.span_id else None


def says_no(traceparent: str | None) -> bool:
    """Whether it is one that says in the usual way that nothing is sampled: quicker than to parse
    it.
    """
    return traceparent is not None and _UNSAMPLED.fullmatch(traceparent) is not None


def trace_of(claim: Claim) -> JobTrace:
    """The trace that the row names; a row that names none starts its own, from what never changes
    about it.
    """
    context = parse(claim.traceparent)
    if context is None:
        trace_id = own_trace(claim)
        return JobTrace(trace_id, root_of(trace_id, claim.id), None)
    root_id = root_of(context.trace_id, claim.id)
    return JobTrace(
        context.trace_id, root_id, None if context.span_id == root_id else context.span_id
    )


def own_trace(claim: Claim) -> int:
    """The id of a job's own trace; its low half is the job's number in disguise, and that alone
    decides about sampling.
    """
    born = claim.run_at if claim.created_at is None else claim.created_at
    return (_hash(_PAIR.pack(round(born.timestamp() * 1e6), claim.id)) or 1) << 64 | low_half(
        claim.id
    )


def low_half(job_id: int) -> int:
    """Evenly spread over all numbers of 64 bits."""
    return job_id * GOLDEN & LOW


def root_of(trace_id: int, job_id: int) -> int:
    """The id of the job's root span: known to all from the start, although the span is sent at the
    job's end.
    """
    return _hash(trace_id.to_bytes(16) + job_id.to_bytes(8, signed=True)) or 1


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())
