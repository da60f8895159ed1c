"""When a worker process that died is started again. Pure."""

from __future__ import annotations

import signal
from datetime import timedelta

from hybrid_runner.policy.intervals import GrowingPause

RESTARTS = GrowingPause(timedelta(seconds=1), timedelta(seconds=30), 2)
"""1 s after the first death, doubling, 30 s at most."""

GOOD_LIFE = timedelta(seconds=60)
"""After a process that ran so long, pauses begin at the shortest again."""

_REFUSALS = (1, 2)


def deaths_in_a_row(before: int, lived: timedelta) -> int:
    """The number of deaths in a row after one more."""
    return 1 if lived >= GOOD_LIFE else before + 1


def pause_after(deaths: int) -> timedelta:
    """How long to wait after so many deaths in a row."""
    return RESTARTS.after(deaths)


def is_refusal(code: int, *, has_worked: bool, fleet_has_worked: bool) -> bool:
    """Whether the process reported that it cannot start, while no process of the fleet has started
    yet.
    """
    return code in _REFUSALS and not has_worked and not fleet_has_worked


def as_shell(code: int) -> int:
    """The exit code that a shell would give for this end."""
    return code if code >= 0 else 128 - code


def describe_end(code: int) -> str:
    """How a process ended, for a sentence that begins with its name."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # the real-time ones have no name
        return f"was ended by signal {-code}"
