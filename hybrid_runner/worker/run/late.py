"""Attempts whose time is over: before they could run, or while they did."""

from __future__ import annotations

import time

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Expired, Raised, Refused


def expired(claim: Claim) -> Expired | None:
    """If it was claimed after `start_by`: what has begun goes on."""
    is_first = claim.attempt == 1 and claim.began_at is None
    if is_first and claim.start_by is not None and claim.start_by <= claim.started_at:
        return Expired(f"start_by ({claim.start_by.isoformat()}) passed before it could begin")
    return None


def too_late(claim: Claim) -> Refused | None:
    if claim.finish_by is not None and claim.finish_by <= claim.server_time(time.monotonic()):
        reason = f"finish_by ({claim.finish_by.isoformat()}) passed before it could run"
        return Refused("FinishByPassed", reason)
    return None


def out_of_time(claim: Claim) -> Raised | Refused:
    if claim.finish_by is not None and claim.finish_by <= claim.server_time(time.monotonic()):
        reason = f"finish_by ({claim.finish_by.isoformat()}) passed while it ran"
        return Refused("FinishByPassed", reason)
    return Raised(
        "TimeoutError", f"ran longer than its time-out of {claim.timeout_seconds or 0:g} s"
    )
