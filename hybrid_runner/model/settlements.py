"""What is written for a job once its attempt has ended. Every job needs one of these: named tuples
are made in a third of the time.

A new class goes into the union; type checkers then name every place that must handle it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, assert_never

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob, State

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
    follow_ups: tuple[NewJob, ...] = ()


class Requeued(NamedTuple):
    """Put the job back, due after `delay`; `data` and `error` are JSON texts."""

    claim: Claim
    delay: timedelta
    charged: bool
    data: str | None = None
    error: str | None = None
    why: RequeueReason = "retry"
    finish_by: datetime | None = None
    wake_on: str | None = None
    """The key of a signal that makes it due earlier."""


class Repeated(NamedTuple):
    """Put the job back for its next run, due after `delay`, as if it were new; `data` is JSON
    text.
    """

    claim: Claim
    delay: timedelta
    data: str | None = None
    finish_by: datetime | None = None
    follow_ups: tuple[NewJob, ...] = ()
    wake_on: str | None = None
    """The key of a signal that makes it due earlier."""


Settlement = Finished | Requeued | Repeated

_COMPLETED: Final = State.COMPLETED
_ORDINARY = _COMPLETED.value
_WORDS = {state: state.value for state in State}
"""Plain strings, for keys of JSON; looked up here because `.value` is slow."""


def word_of(settlement: Settlement) -> str:
    """The final state, or why the job was put back."""
    if isinstance(settlement, Finished):  # most; a match would take twice as long
        state = settlement.state
        return _ORDINARY if state is _COMPLETED else _WORDS[state]
    match settlement:
        case Requeued():
            return settlement.why
        case Repeated():
            return _ORDINARY
        case _:
            assert_never(settlement)


class Split(NamedTuple):
    """The settlements that put jobs back, those that end a run, and those that end jobs; each in
    order.
    """

    requeues: list[Requeued]
    repeats: list[Repeated]
    finishes: list[Finished]


def split(settlements: Sequence[Settlement]) -> Split:
    """Settlements by what is to be done with the job."""
    finishes = [each for each in settlements if isinstance(each, Finished)]
    if len(finishes) == len(settlements):
        return Split([], [], finishes)
    requeues, repeats, finishes = list[Requeued](), list[Repeated](), list[Finished]()
    for settlement in settlements:
        match settlement:
            case Finished():
                finishes.append(settlement)
            case Requeued():
                requeues.append(settlement)
            case Repeated():
                repeats.append(settlement)
            case _:
                assert_never(settlement)
    return Split(requeues, repeats, finishes)


def by_follow_ups(settlements: Sequence[Settlement]) -> list[list[Settlement]]:
    """Those without follow-ups, then those with some; each unless there are none."""
    leaving: list[Settlement] = [
        s for s in settlements if not isinstance(s, Requeued) and s.follow_ups
    ]
    if not leaving:
        return [[*settlements]] if settlements else []
    plain = [s for s in settlements if isinstance(s, Requeued) or not s.follow_ups]
    return [part for part in (plain, leaving) if part]
