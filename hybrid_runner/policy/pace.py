"""How long to pause: between fallback polls, between reconnects, between attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Pace:
    """A pause that grows by `factor` from `base` to `cap`."""

    base: timedelta
    cap: timedelta
    factor: float

    def poll(self, empty_polls: int) -> timedelta:
        """The pause after so many empty polls in a row: 5, 5, 7.5, 11.25 … 30 by default (A2)."""
        return self._grown(max(0, empty_polls - 1))

    def outage(self, failures: int, chance: float) -> timedelta:
        """The pause after so many failures in a row, up to a fifth shorter by `chance` so that a
        fleet spreads.
        """
        return self._grown(max(0, failures - 1)) * (1 - 0.2 * chance)

    def _grown(self, steps: int) -> timedelta:
        # 64 doublings pass every cap; past that the power would overflow.
        return min(
            self.cap,
            timedelta(seconds=min(self.base.total_seconds() * self.factor ** min(steps, 64), 1e9)),
        )


OUTAGE = Pace(timedelta(seconds=1), timedelta(seconds=10), 2)
"""Postgres does not answer: 1 s, doubling, 10 s at most (A9)."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter between attempts; `max_attempts` bounds them."""

    base: Duration = timedelta(seconds=1)
    cap: Duration = timedelta(minutes=5)
    factor: float = 2.0

    def __post_init__(self) -> None:
        if parse_duration(self.base) > parse_duration(self.cap):
            raise ConfigurationError("a RetryPolicy needs a base that is not longer than its cap")
        if not 1 <= self.factor <= 100:
            raise ConfigurationError(
                f"a RetryPolicy needs a factor between 1 and 100, not {self.factor!r}"
            )

    def delay(self, attempt: int, chance: float) -> timedelta:
        """The pause after attempt number `attempt`, by `chance` between `base` and the grown
        ceiling.
        """
        base = parse_duration(self.base)
        ceiling = Pace(base, parse_duration(self.cap), self.factor).poll(attempt + 1)
        return base + (ceiling - base) * chance
