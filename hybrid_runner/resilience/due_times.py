"""When something that is looked at again and again is due."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hybrid_runner.durations import Duration, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.breaker import Breaker, BreakerState
from hybrid_runner.waiting.backoff import Backoff


@dataclass(frozen=True, slots=True)
class DueTimes:
    """After a success `interval`, after failures `backoff` where that is longer, and while a
    breaker is open the rest of its `cooldown`.
    """

    interval: Duration = timedelta(seconds=30)
    backoff: Backoff = field(default=Backoff("1s", cap="5m", jitter=0.0))
    cooldown: Duration = timedelta(minutes=5)

    def __post_init__(self) -> None:
        parse_positive("interval of DueTimes", self.interval)
        parse_positive("cooldown of DueTimes", self.cooldown)
        if not isinstance(self.backoff, Backoff):
            raise ConfigurationError(f"backoff of DueTimes must be a Backoff, not {self.backoff!r}")

    def next_due(
        self,
        now: datetime,
        state: BreakerState,
        *,
        address_changed: bool = False,
        chance: float = 0.5,
    ) -> datetime:
        """When it is due, as of now: `state` is that after the last look, whose failures in a row
        count without a breaker too. Asked again while the breaker is open, the answer stays the
        same: the cool-down counts from the opening, not from the question.
        """
        if address_changed:
            return now
        if state.mode != "closed":
            return Breaker(cooldown=self.cooldown).ends_at(state, now)
        interval = parse_positive("interval", self.interval)
        if state.failures:
            interval = max(interval, self.backoff.delay(state.failures - 1, chance))
        return now + interval
