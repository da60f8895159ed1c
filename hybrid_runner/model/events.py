"""Events of a worker: a look was made, a batch of outcomes was settled. Observers are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Finished, Settlement


class LookMade(NamedTuple):
    """One look or sweep that Postgres answered; most find nothing."""

    queue: str
    way: str
    """Why it was made: ring, look, timer, sweep …"""
    asked: int
    """Free slots."""
    claims: Sequence[Claim]
    swept: bool
    """Whether it went from the start of the lanes."""
    began: float
    """By the monotonic clock, as are all times here."""
    ended: float
    asleep_since: float | None = None
    """When its queue's claimer fell asleep; None: it was not asleep."""


class BatchSettled(NamedTuple):
    """One batch of outcomes that Postgres has."""

    settled: Sequence[Settlement]
    stale: Sequence[Finished]
    """Their claims were no longer valid: nothing was written."""
    began: float
    ended: float
