"""What a kind says of its jobs: how they are tried again, how they wait, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hybrid_runner.model.claims import Claim
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.waiting.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Budgets:
    """How long a job may go on, over all its attempts and waits; None: without limit. What a job
    says itself counts instead.
    """

    max_snoozes: int | None = None
    max_duration: timedelta | None = None
    """From the start of its first attempt; the last look is at the deadline."""
    finish_within: timedelta | None = None
    """From when it is first due; as `finish_by`, it stops an attempt that runs."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All of it."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    pace: Backoff = field(default_factory=Backoff)
    budgets: Budgets = field(default_factory=Budgets)


def finish_by(claim: Claim, budgets: Budgets) -> datetime | None:
    """When the job has to be finished, by its own word or that of its kind."""
    if claim.finish_by is not None:
        return claim.finish_by
    within = finish_within(claim, budgets)
    if within is None:
        return None
    # Whoever puts a job back writes down when it has to be finished; but a claim that was lost.
    first_due = claim.run_at if claim.began_at is None else claim.began_at
    return first_due + within


def finish_within(claim: Claim, budgets: Budgets) -> timedelta | None:
    """How long the job may take, from when it is first due."""
    return _own_or(claim.finish_within_seconds, budgets.finish_within)


def max_snoozes(claim: Claim, budgets: Budgets) -> int | None:
    """How often the job may be put back by its handler."""
    return budgets.max_snoozes if claim.max_snoozes is None else claim.max_snoozes


def max_duration(claim: Claim, budgets: Budgets) -> timedelta | None:
    """How long the job may go on, from the start of its first attempt."""
    return _own_or(claim.max_duration_seconds, budgets.max_duration)


def _own_or(seconds: float | None, otherwise: timedelta | None) -> timedelta | None:
    # Whoever inserts a job can write an interval of more years than Python has.
    return otherwise if seconds is None else timedelta(seconds=min(max(0.0, seconds), _TEN_YEARS))


_TEN_YEARS = 3653 * 86400.0
