"""How long to wait before the next look at something that is not ready yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.durations import Duration, duration_text, parse_duration
from hybrid_runner.errors import ConfigurationError

SHORTEST = timedelta(milliseconds=50)
"""No pace is faster: a loop without a pause would keep a worker busy with one job."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow by `factor` from `base`, spread by `jitter` to both sides, none longer than
    `cap`.
    """

    base: Duration = timedelta(seconds=1)
    cap: Duration = timedelta(minutes=1)
    factor: float = 2.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        base, cap = parse_duration(self.base), parse_duration(self.cap)
        if base > cap:
            raise ConfigurationError(
                f"a Backoff needs a base that is not longer than its cap: {duration_text(base)} is"
                f" longer than {duration_text(cap)}"
            )
        if not _is_number(self.factor) or not 1 <= self.factor <= 100:
            raise ConfigurationError(
                f"a Backoff needs a factor between 1 and 100, not {self.factor!r}"
            )
        if not _is_number(self.jitter) or not 0 <= self.jitter < 1:
            raise ConfigurationError(
                f"a Backoff needs a jitter between 0 and 1, such as 0.2, not {self.jitter!r}"
            )

    def delay(self, times: int, chance: float) -> timedelta:
        """The delay after it was waited for so many times before; `chance` is evenly drawn between
        0 and 1.
        """
        cap = parse_duration(self.cap).total_seconds()
        # 64 doublings pass every cap; past that the power would overflow.
        grown = parse_duration(self.base).total_seconds() * self.factor ** min(max(0, times), 64)
        middle = min(cap, grown)
        shortest, longest = middle * (1 - self.jitter), min(cap, middle * (1 + self.jitter))
        return max(SHORTEST, timedelta(seconds=shortest + (longest - shortest) * chance))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
