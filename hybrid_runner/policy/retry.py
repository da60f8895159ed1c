"""How long to wait before the next attempt of a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.resilience.numbers import is_number


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter between attempts; `max_attempts` bounds them."""

    base: Duration = timedelta(seconds=1)
    cap: Duration = timedelta(minutes=5)
    factor: float = 2.0

    def __post_init__(self) -> None:
        if parse_duration(self.base) > parse_duration(self.cap):
            raise ConfigurationError("a RetryPolicy needs a base that is not longer than its cap")
        if not (is_number(self.factor) and 1 <= self.factor <= 100):
            raise ConfigurationError(
                f"a RetryPolicy needs a factor between 1 and 100, not {self.factor!r}"
            )

    def delay(self, attempt: int, chance: float) -> timedelta:
        """The pause after attempt number `attempt`: evenly drawn by `chance` between `base` and a
        ceiling that grows with each attempt.
        """
        base = parse_duration(self.base)
        ceiling = GrowingPause(base, parse_duration(self.cap), self.factor).grown(attempt)
        return base + (ceiling - base) * chance
