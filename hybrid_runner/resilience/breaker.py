"""When calls that keep failing are no longer made, and when one is tried again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from hybrid_runner.durations import Duration, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.numbers import is_count

BreakerMode = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What has to be kept between two calls; `BreakerState()` is the first one."""

    mode: BreakerMode = "closed"
    failures: int = 0
    """So many in a row."""
    opened_at: datetime | None = None
    """When the failure came that opened it; while half-open, when the probe was let through."""

    def __post_init__(self) -> None:
        if self.mode not in get_args(BreakerMode):
            raise ConfigurationError(
                f"mode of a BreakerState must be closed, open or half_open, not {self.mode!r}"
            )
        if not is_count(self.failures, 0):
            raise ConfigurationError(
                f"failures of a BreakerState must be a whole number, not {self.failures!r}"
            )
        if self.opened_at is not None and not _is_aware(self.opened_at):
            raise ConfigurationError(
                "opened_at of a BreakerState must be a datetime with a time zone, not"
                f" {self.opened_at!r}"
            )


@dataclass(frozen=True, slots=True)
class Breaker:
    """So many failures in a row open it. From then on no call is made, until the cool-down is over
    and exactly one goes: a probe, whose success closes the breaker.
    """

    failures: int = 10
    cooldown: Duration = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if not is_count(self.failures, 1):
            raise ConfigurationError(
                f"failures of a Breaker must be a whole number from 1 on, not {self.failures!r}"
            )
        parse_positive("cooldown of a Breaker", self.cooldown)

    def before(self, state: BreakerState, now: datetime) -> tuple[BreakerState, bool]:
        """Before a call: the state from now on, and whether this call may be made.

        A probe of which nothing is heard for one cool-down is taken for lost, and another one goes.
        """
        if state.mode == "closed":
            return state, True
        if state.opened_at is None or state.opened_at > now:
            # Nobody knows when, or the clock went back: it must not stay open for longer.
            return replace(state, opened_at=now), False
        if now < state.opened_at + parse_positive("cooldown", self.cooldown):
            return state, False
        return replace(state, mode="half_open", opened_at=now), True

    def after(self, state: BreakerState, ok: bool, now: datetime) -> BreakerState:  # noqa: FBT001  # before and after are a pair
        """After a call: the state from now on."""
        if ok:
            return BreakerState()
        failures = state.failures + 1
        if state.mode == "open":
            # A call that was made before it opened: the cool-down counts from the opening.
            return BreakerState("open", failures, state.opened_at or now)
        if state.mode == "half_open" or failures >= self.failures:
            return BreakerState("open", failures, now)
        return BreakerState("closed", failures)

    def ends_at(self, state: BreakerState, now: datetime) -> datetime:
        """When the next call may be made: now, or when the cool-down is over."""
        if state.mode == "closed":
            return now
        since = now if state.opened_at is None else min(now, state.opened_at)
        return max(now, since + parse_positive("cooldown", self.cooldown))


def _is_aware(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None
