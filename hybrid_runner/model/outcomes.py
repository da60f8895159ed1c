"""What a handler can say when it ends, and what is written for it.

A new class goes into one of the unions below; type checkers then name every place that must handle
it. The classes that every job needs are named tuples, which are made in a third of the time.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum
from typing import (
    Any,
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

    def __str__(self) -> str:
        return repr(self)

    @property
    def cause_traceback(self) -> str:
        """The traceback of `error` in `raise Fail("…") from error`; empty without one."""
        if self.__cause__ is not None:
            return "".join(traceback.format_exception(self.__cause__))
        return str(vars(self).get(_CAUSE, ""))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # Exceptions are copied and pickled by their positional arguments, which leave out named
        # ones; and a subclass may take others than its fields. A cause is sent as text.
        state = {**vars(self), **({_CAUSE: text} if (text := self.cause_traceback) else {})}
        return _restore, (type(self), self.args, state)


_CAUSE = "_cause_traceback"


def _restore(cls: type[T], args: tuple[Any, ...], state: dict[str, Any]) -> T:
    restored = cls.__new__(cls, *args)
    vars(restored).update(state)
    return restored


@dataclass_transform(frozen_default=True)
def _outcome(cls: type[T]) -> type[T]:
    """A dataclass with frozen fields. Whatever else may be noted on it, as on any exception."""
    made: Any = dataclass(frozen=True)(cls)
    frozen = frozenset(each.name for each in fields(made))

    def set_attribute(self: _Raisable, name: str, value: object) -> None:
        if name in frozen:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        Exception.__setattr__(self, name, value)

    def delete_attribute(self: _Raisable, name: str) -> None:
        if name in frozen:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        Exception.__delattr__(self, name)

    made.__setattr__ = set_attribute
    made.__delattr__ = delete_attribute
    made.__hash__ = _hash_by_type
    return cls


def _hash_by_type(outcome: object) -> int:
    return hash(type(outcome))  # the fields may hold what has no hash


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
H = TypeVar("H", bound=HandlerOutcome)


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


RefusalType = Literal[
    "PayloadRefused",
    "PayloadUnreadable",
    "ResultRefused",
    "OutcomeRefused",
    "FinishByPassed",
    "HandlerNotFound",
]
"""Why a job fails without a word of its handler: `errors[].type`, and `JobFailed.error_type`.

The payload does not fit; Postgres cannot read it; the result does not fit, or JSON or Postgres
cannot hold it; the same of what else the handler said; `finish_by` passed; a process cannot import
the handler.
"""


@dataclass(frozen=True, slots=True)
class Refused:
    """The job fails, although its handler did not say so: another attempt would end the same
    way.
    """

    type: RefusalType
    reason: str


class Stopped(Enum):
    """Why the attempt was stopped from outside: the worker stops (the job goes back uncharged), the
    job was cancelled, or its row is gone.
    """

    SHUTDOWN = "shutdown"
    NO_PLACE = "no place"  # it waited in vain for a thread or a process, and has not begun
    CANCEL = "cancel"
    ROW_GONE = "row gone"


Outcome = HandlerOutcome | Completed | Raised | Refused | Stopped


def with_cause(said: H, traceback: str) -> H:
    """The outcome, raised from an error of which there is the traceback alone."""
    if traceback:
        vars(said)[_CAUSE] = traceback
    return said


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
