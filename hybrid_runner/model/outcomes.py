"""What a handler can say when it ends, and what else can come of an attempt.

A new class goes into one of the unions below; type checkers then name every place that must handle
it. The class that most jobs need is a named tuple, which is made in a third of the time.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    overload,
)

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.jobs import NewJob, check_signal_key
from hybrid_runner.model.signals import Wanted

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
    """Run the job again after a delay or at a time, or by its kind's pace if neither is given; the
    attempt is not charged.

    `data` replaces the job's memory; `reason` is kept in its errors; `wake_on` is the key of a
    signal that runs it earlier.
    """

    delay: Duration | None
    data: Any
    until: datetime | None
    reason: str | None
    wake_on: str | None

    @overload
    def __init__(
        self,
        delay: Duration | datetime | None = None,
        *,
        data: Any = None,
        reason: str | None = None,
        wake_on: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        *,
        until: datetime | None,
        data: Any = None,
        reason: str | None = None,
        wake_on: str | None = None,
    ) -> None: ...
    def __init__(
        self,
        delay: Duration | datetime | None = None,
        *,
        until: datetime | None = None,
        data: Any = None,
        reason: str | None = None,
        wake_on: str | None = None,
    ) -> None:
        """`Snooze()`, `Snooze("5m")`, or with the time: `Snooze(until=tomorrow)`."""
        if delay is not None and until is not None:
            raise ConfigurationError(
                'Snooze takes a delay or a time, not both: Snooze("5m") or Snooze(until=…)'
            )
        if isinstance(delay, datetime):
            delay, until = None, delay
        if delay is not None:
            parse_duration(delay)
        if until is not None:
            _check_time(until)
        if wake_on is not None:
            check_signal_key(wake_on)
        vars(self).update(delay=delay, data=data, until=until, reason=reason, wake_on=wake_on)


def _check_time(until: object) -> None:
    if not isinstance(until, datetime):
        raise ConfigurationError(f"Snooze(until=…) takes a datetime, not {until!r}")
    if until.utcoffset() is None:
        raise ConfigurationError(
            f"Snooze: {until.isoformat()} has no time zone: use datetime.now(UTC) or datetime(…,"
            " tzinfo=…)"
        )


@_outcome
class Repeat(_Raisable):
    """This run of the job is over and counts as completed; the same job runs again later, with all
    its attempts and budgets. For work that recurs for ever.

    `data` replaces the job's memory; `wake_on` is the key of a signal that runs it earlier. A run
    is given all signals of that key that are there when it begins.
    """

    after: Duration
    data: Any = None
    wake_on: str | None = None

    def __post_init__(self) -> None:
        parse_duration(self.after)
        if self.wake_on is not None:
            check_signal_key(self.wake_on)


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
    """End the job as failed, now, whatever attempts are left; `then` is stored with its end."""

    reason: str
    then: NewJob | Sequence[NewJob] = ()

    def __post_init__(self) -> None:
        then = (self.then,) if isinstance(self.then, NewJob) else self.then
        if not (isinstance(then, (list, tuple)) and all(isinstance(job, NewJob) for job in then)):
            raise ConfigurationError(
                f"Fail(…, then=…) takes jobs, such as clean_up.new(payload), not"
                f" {repr(self.then)[:80]}"
            )


@_outcome
class Cancel(_Raisable):
    """End the job as cancelled."""

    reason: str


HandlerOutcome = Snooze | Repeat | Retry | Fail | Cancel
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
    "BudgetUsedUp",
    "DataRefused",
    "HandlerNotFound",
]
"""Why a job fails without a word of its handler: `errors[].type`, and `JobFailed.error_type`.

The payload does not fit; Postgres cannot read it; the result does not fit, or JSON or Postgres
cannot hold it; the same of what else the handler said; `finish_by` passed; `max_snoozes` or
`max_duration` is used up; the memory does not fit; a process cannot import the handler.
"""


@dataclass(frozen=True, slots=True)
class Refused:
    """The job fails, although its handler did not say so: another attempt would end the same
    way.
    """

    type: RefusalType
    reason: str


@dataclass(frozen=True, slots=True)
class Expired:
    """It was not to begin so late: it ends as cancelled, and its handler is not called."""

    reason: str


@dataclass(frozen=True, slots=True)
class RowUnread:
    """The row that the job is about cannot be read now: it goes back, uncharged, for a while."""

    reason: str


class Stopped(Enum):
    """Why the attempt was stopped from outside: the worker stops (the job goes back uncharged), the
    job was cancelled, or its row is gone.
    """

    SHUTDOWN = "shutdown"
    NO_PLACE = "no place"  # it waited in vain for a thread or a process, and has not begun
    CANCEL = "cancel"
    ROW_GONE = "row gone"


Outcome = HandlerOutcome | Completed | Raised | Refused | Expired | RowUnread | Stopped


class Suspended(BaseException):
    """Unwinds a handler that waits for a signal; `Job.signal` raises it.

    It is no Exception, so that handlers do not catch it by accident.
    """

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(f"the job waits for signal {wanted.key}")
        self.snooze = Snooze(wanted.timeout, wake_on=wanted.key)


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
    while isinstance(said, BaseExceptionGroup) and (  # as of a TaskGroup
        len(said.exceptions) == 1 or said.subgroup(Suspended) is said
    ):
        said = said.exceptions[0]  # of several that wait, the others wait again afterwards
    if isinstance(said, Suspended):
        return said.snooze
    if isinstance(said, HandlerOutcome):
        return said.with_traceback(None)  # a traceback would keep the handler's frames alive
    stack = "".join(traceback.format_exception(error))
    return Raised(type(error).__name__, str(error), stack, error)


class Left(NamedTuple):
    """What an attempt leaves behind beside its outcome."""

    follow_ups: tuple[NewJob, ...] = ()
    """To be stored if it ends the job, or a run of it, without an error."""
    data: str | None = None
    """JSON text of the memory, if the handler changed it."""


NOTHING_LEFT = Left()
