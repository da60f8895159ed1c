"""What a handler can say when it ends, and what is written down for it. Frozen values, matched exhaustively.

Those that every job passes through are tuples: they are made in a third of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.models import Claim, State

# --- said by handlers: any other return value means completed, with that result


@dataclass(frozen=True, slots=True)
class Snooze:
    """The same job again after `delay`; the attempt is not charged. `data` replaces the job's memory."""

    delay: Duration
    data: Any = None

    def __post_init__(self) -> None:
        parse_duration(self.delay)


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again, after `after` or by the retry policy; the attempt is charged."""

    after: Duration | None = None
    reason: str = "the handler asked for a retry"

    def __post_init__(self) -> None:
        if self.after is not None:
            parse_duration(self.after)


@dataclass(frozen=True, slots=True)
class Fail:
    """End the job as failed, now, whatever attempts are left."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job as cancelled."""

    reason: str


# --- found by the executor


class Completed(NamedTuple):
    """The handler returned; `result` is JSON text."""

    result: str


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised, or ran out of time."""

    kind: str
    message: str
    traceback: str = ""


class Stopped(Enum):
    """The attempt was stopped from outside: the job goes back uncharged, ends as cancelled, or was deleted."""

    SHUTDOWN = "shutdown"
    CANCEL = "cancel"
    ROW_GONE = "row gone"


Outcome = Completed | Snooze | Retry | Fail | Cancel | Raised | Stopped


# --- written down by the settler


class Finished(NamedTuple):
    """Move the job to the archive in this state; `result` and `error` are JSON texts."""

    claim: Claim
    state: State
    result: str | None = None
    error: str | None = None


class Requeued(NamedTuple):
    """Put the job back, due after `delay`; `data` and `error` are JSON texts."""

    claim: Claim
    delay: timedelta
    charged: bool
    data: str | None = None
    error: str | None = None
    why: str = "retry"


Settlement = Finished | Requeued

_WORDS = {state: state.value for state in State}
"""Plain ones: JSON takes no other keys, and .value is slow."""


def word_of(settlement: Settlement) -> str:
    """The final state, or why the job was put back."""
    return _WORDS[settlement.state] if isinstance(settlement, Finished) else settlement.why
