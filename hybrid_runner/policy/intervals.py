"""Pauses that grow: between fallback polls, reconnects, restarts and attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class GrowingPause:
    """A pause that grows by `factor` from `base` to `cap`."""

    base: timedelta
    cap: timedelta
    factor: float

    def after(self, times: int) -> timedelta:
        """The pause after so many empty polls or failures in a row, the first being `base`."""
        return self.grown(max(0, times - 1))

    def spread(self, times: int, chance: float) -> timedelta:
        """The pause after so many failures in a row, up to a fifth shorter by `chance`, so that a
        fleet does not come back all at once.
        """
        return self.after(times) * (1 - 0.2 * chance)

    def grown(self, steps: int) -> timedelta:
        """The pause after it grew so many times."""
        # 64 doublings pass every cap; past that the power would overflow.
        seconds = min(self.base.total_seconds() * self.factor ** min(steps, 64), 1e9)
        return min(self.cap, timedelta(seconds=seconds))


OUTAGE = GrowingPause(timedelta(seconds=1), timedelta(seconds=10), 2)
"""Postgres does not answer: 1 s, doubling, 10 s at most."""
