"""What a handler can say when it ends, and what is written for it.

A new class goes into one of the unions below; type checkers then name every place that must handle
it. The classes that every job needs are named tuples, which are made in a third of the time.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    assert_never,
    dataclass_transform,
    overload,
)

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State

T = TypeVar("T")

# --- returned or raised by handlers; any other return value completes the job with that result


class _Raisable(Exception):
    """An outcome that a handler can also raise, from within any function that it calls."""

    _set_by_python: ClassVar = frozenset(
        {"__cause__", "__context__", "__notes__", "__suppress_context__", "__traceback__"}
    )

    def __str__(self) -> str:
        return repr(self)

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        # By default, exceptions are copied and pickled without their keyword arguments.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]  # each is one


@dataclass_transform(frozen_default=True)
def _outcome(cls: type[T]) -> type[T]:
    """A frozen dataclass that can be raised: Python and contextlib assign `__traceback__` and the
    like.
    """
    made: Any = dataclass(frozen=True)(cls)
    refuse = made.__setattr__

    def set_attribute(self: _Raisable, name: str, value: object) -> None:
        if name in _Raisable._set_by_python:  # noqa: SLF001  # of this module
            Exception.__setattr__(self, name, value)
        else:
            refuse(self, name, value)

    made.__setattr__ = set_attribute
    return cls


@_outcome
class Snooze(_Raisable):
    """Run the job again after a delay or at a time; the attempt is not charged.

    `data` replaces the job's memory.
    """

    delay: Duration | None
    data: Any
    until: datetime | None

    @overload
    def __init__(self, delay: Duration | datetime, data: Any = None) -> None: ...
    @overload
    def __init__(self, *, data: Any = None, until: datetime) -> None: ...
    def __init__(
        self,
        delay: Duration | datetime | None = None,
        data: Any = None,
        until: datetime | None = None,
    ) -> None:
        """`Snooze("5m")`, or with the time: `Snooze(until=tomorrow)`, `Snooze(tomorrow)`."""
        if (delay is None) == (until is None):
            raise ConfigurationError(
                'Snooze takes a delay or a time: Snooze("5m") or Snooze(until=…)'
            )
        if isinstance(delay, datetime):
            delay, until = None, delay
        if delay is not None:
            parse_duration(delay)
        if until is not None:
            _check_time(until)
        vars(self).update(delay=delay, data=data, until=until)


def _check_time(until: object) -> None:
    if not isinstance(until, datetime):
        raise ConfigurationError(f"Snooze(until=…) takes a datetime, not {until!r}")
    if until.utcoffset() is None:
        raise ConfigurationError(
            f"Snooze: {until.isoformat()} has no time zone: use datetime.now(UTC) or datetime(…,"
            " tzinfo=…)"
        )


@_outcome
class Retry(_Raisable):
    """Try again, after `after` or by the retry policy; the attempt is charged."""

    after: Duration | None = None
    reason: str = "the handler asked for a retry"

    def __post_init__(self) -> None:
        if self.after is not None:
            parse_duration(self.after)


@_outcome
class Fail(_Raisable):
    """End the job as failed, now, whatever attempts are left."""

    reason: str


@_outcome
class Cancel(_Raisable):
    """End the job as cancelled."""

    reason: str


HandlerOutcome = Snooze | Retry | Fail | Cancel
"""All that a handler may return or raise beside a result."""


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
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """The exception itself; None if it was raised in another process."""

    def __reduce__(self) -> tuple[type[Raised], tuple[str, str, str]]:
        return Raised, (
            self.kind,
            self.message,
            self.traceback,
        )  # without the exception: not all can be pickled


class Stopped(Enum):
    """Why the attempt was stopped from outside: the worker stops (the job goes back uncharged), the
    job was cancelled, or its row is gone.
    """

    SHUTDOWN = "shutdown"
    CANCEL = "cancel"
    ROW_GONE = "row gone"


Outcome = HandlerOutcome | Completed | Raised | Stopped


def outcome_of_exception(error: BaseException) -> HandlerOutcome | Raised:
    """The outcome that an exception of a handler means.

    A raised outcome is that outcome, also when it is alone in an exception group.
    """
    said = error
    while isinstance(said, BaseExceptionGroup) and len(said.exceptions) == 1:  # as of a TaskGroup
        said = said.exceptions[0]
    if isinstance(said, HandlerOutcome):
        return said.with_traceback(None)  # a traceback would keep the handler's frames alive
    stack = "".join(traceback.format_exception(error))
    return Raised(type(error).__name__, str(error), stack, error)


# --- written by the settler

RequeueReason = Literal["retry", "snooze", "release"]
"""Why a job was put back: its attempt failed, its handler asked for later, or its worker stops."""


FinalState = Literal[State.COMPLETED, State.FAILED, State.CANCELLED]


class Finished(NamedTuple):
    """Move the job to the archive in this state; `result` and `error` are JSON texts."""

    claim: Claim
    state: FinalState
    result: str | None = None
    error: str | None = None
    exception: BaseException | None = None
    """What the last attempt raised, for the log."""


class Requeued(NamedTuple):
    """Put the job back, due after `delay`; `data` and `error` are JSON texts."""

    claim: Claim
    delay: timedelta
    charged: bool
    data: str | None = None
    error: str | None = None
    why: RequeueReason = "retry"


Settlement = Finished | Requeued

_WORDS = {state: state.value for state in State}
"""Plain strings, for keys of JSON; looked up here because `.value` is slow."""


def word_of(settlement: Settlement) -> str:
    """The final state, or why the job was put back."""
    match settlement:
        case Finished():
            return _WORDS[settlement.state]
        case Requeued():
            return settlement.why
        case _:
            assert_never(settlement)


def split(settlements: Iterable[Settlement]) -> tuple[list[Requeued], list[Finished]]:
    """The settlements that put jobs back, and those that end them, each in order."""
    requeues, finishes = list[Requeued](), list[Finished]()
    for settlement in settlements:
        match settlement:
            case Finished():
                finishes.append(settlement)
            case Requeued():
                requeues.append(settlement)
            case _:
                assert_never(settlement)
    return requeues, finishes
