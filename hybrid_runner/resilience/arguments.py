"""What an AdaptiveScheduler is asked for, checked: each refusal is one line that names the
argument.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from hybrid_runner.durations import Duration, duration_text, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.adapt import Adapt
from hybrid_runner.resilience.breaker import Breaker
from hybrid_runner.resilience.loop_state import LoopRules
from hybrid_runner.resilience.numbers import is_number

Function = TypeVar("Function", bound=Callable[..., object])

_SHORTEST = timedelta(milliseconds=1)
_LONGEST_NAME = 200


def checked_name(name: object) -> str:
    """The name of a loop."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        raise ConfigurationError(
            f"name must be a text of 1 to {_LONGEST_NAME} characters, not {name!r:.80}"
        )
    return name


def checked_function(name: str, function: Function) -> Function:
    """A function that is to be called later."""
    if not callable(function):
        raise ConfigurationError(
            f"{name} must be a function, which is called later, not {function!r:.80}"
        )
    return function


def checked_growth(name: str, value: float) -> float:
    """A number by which something is multiplied."""
    if not is_number(value) or not 1 <= value <= 1000:
        raise ConfigurationError(f"{name} must be between 1 and 1000, not {value!r:.80}")
    return value


def checked_jitter(value: float) -> float:
    """By which part of itself a pause is longer or shorter."""
    if not is_number(value) or not 0 <= value < 1:
        raise ConfigurationError(
            f"jitter must be at least 0 and less than 1, such as 0.2, not {value!r:.80}"
        )
    return value


def checked_rules(
    *,
    interval: Duration,
    growth: tuple[float, float],
    jitter: float,
    breaker: Breaker | None,
    adapt: Adapt | None,
    while_paused: Duration | None,
) -> LoopRules:
    """How a loop goes on; `growth` are the factor and the cap of its multiplier."""
    every = parse_positive("interval", interval)
    if every < _SHORTEST:
        raise ConfigurationError("interval must be 1 ms or more")
    _check_type("breaker", breaker, Breaker)
    _check_type("adapt", adapt, Adapt)
    if adapt is not None:
        shortest = parse_positive("shortest", adapt.shortest)
        longest = parse_positive("longest", adapt.longest)
        if not shortest <= every <= longest:
            raise ConfigurationError(
                f"interval must be within that of adapt, {duration_text(shortest)} to"
                f" {duration_text(longest)}, not {duration_text(every)}"
            )
    slower = None if while_paused is None else parse_positive("while_paused", while_paused)
    return LoopRules(every, *growth, checked_jitter(jitter), breaker, adapt, slower)


def _check_type(name: str, value: object, wanted: type) -> None:
    if value is not None and not isinstance(value, wanted):
        raise ConfigurationError(f"{name} must be {wanted.__name__}(…) or None, not {value!r:.80}")
