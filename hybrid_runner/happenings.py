"""What happens in a worker, as values, and who is told: whatever counts or draws it is an observer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hybrid_runner.models import Claim
from hybrid_runner.outcomes import Finished, Settlement


class Search(NamedTuple):
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
    missed: int = 0
    """Jobs that earlier fallback polls found although a ring was due, and that were counted since the last search."""


class Writing(NamedTuple):
    """One batch of outcomes that Postgres has."""

    settled: Sequence[Settlement]
    stale: Sequence[Finished]
    """Their claims were no longer valid: nothing was written."""
    began: float
    ended: float


class Observer(Protocol):
    """Told in the worker's loop, after the fact; must be quick."""

    def searched(self, search: Search) -> None:
        """A look ended."""

    def wrote(self, writing: Writing) -> None:
        """Outcomes were written."""

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """Jobs of lost workers were put back or ended; told in the heartbeat's thread."""
