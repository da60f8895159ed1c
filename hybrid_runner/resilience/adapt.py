"""An interval that follows how often the data changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.durations import Duration, duration_text, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.numbers import is_number


@dataclass(frozen=True, slots=True)
class Adapt:
    """A look that finds a change divides the interval by `factor`, one that finds none multiplies
    it, between `shortest` and `longest`: it settles where every second look finds a change.
    """

    shortest: Duration
    longest: Duration
    factor: float = 1.5

    def __post_init__(self) -> None:
        shortest = parse_positive("shortest of an Adapt", self.shortest)
        longest = parse_positive("longest of an Adapt", self.longest)
        if shortest > longest:
            raise ConfigurationError(
                "shortest of an Adapt must not be longer than its longest:"
                f" {duration_text(shortest)} is longer than {duration_text(longest)}"
            )
        if not is_number(self.factor) or not 1 < self.factor <= 100:
            raise ConfigurationError(
                f"factor of an Adapt must be more than 1 and at most 100, not {self.factor!r}"
            )

    def interval(self, before: timedelta, *, changed: bool) -> timedelta:
        """The interval after a look that found a change, or none."""
        shortest = parse_positive("shortest", self.shortest)
        longest = parse_positive("longest", self.longest)
        grown = before / self.factor if changed else before * self.factor
        return min(longest, max(shortest, grown))
