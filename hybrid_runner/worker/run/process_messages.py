"""What a process for handlers sends to its worker: JSON that is read with suspicion, since a
handler can write into its pipe whatever it likes.
"""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never, cast, get_args

import orjson

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.handlers.new_job_checks import bytes_of_job, check_may_follow
from hybrid_runner.jsontext import NotStorable, check, decode, encode, printable
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.outcomes import (
    NOTHING_LEFT,
    Cancel,
    Completed,
    Fail,
    HandlerOutcome,
    Left,
    Raised,
    RefusalType,
    Refused,
    Repeat,
    Retry,
    Snooze,
    with_cause,
)
from hybrid_runner.model.uses import USES, Use, Uses
from hybrid_runner.secrets import hide
from hybrid_runner.worker.run.plain_jobs import plain_jobs, read_jobs

HEADER = struct.Struct("!I")
LARGEST = 8 * 1024 * 1024
"""Bytes of one message: a result of the largest size and jobs that are to follow, written as text
inside of JSON, take twice their own.
"""
_LONGEST_TRACEBACK = 8000
_MOST_USES, _MOST_TIMES = 1000, 1_000_000
"""Different uses of values in one attempt, and times of each."""
_REFUSALS = frozenset(get_args(RefusalType))

FromHandler = HandlerOutcome | Completed | Raised | Refused


class BadMessage(Exception):
    """What came is no message."""


class Ready(NamedTuple):
    """The process can run handlers."""


class Progress(NamedTuple):
    """How far an attempt is; `report` is JSON text."""

    job: int
    claim: int
    report: str


class Save(NamedTuple):
    """A memory to store; `data` is JSON text. It waits for an answer."""

    job: int
    claim: int
    data: str


class Ended(NamedTuple):
    """An attempt has ended."""

    job: int
    claim: int
    outcome: FromHandler
    completed_by_handler: bool
    left: Left = NOTHING_LEFT
    uses: Uses | None = None
    """What the values of its memory did."""


Message = Ready | Progress | Save | Ended


def framed(content: bytes) -> bytes:
    """With its length before it."""
    return HEADER.pack(len(content)) + content


def written(message: Message) -> bytes:
    """A message as bytes, with its length before it."""
    return framed(orjson.dumps(_plain(message)))


def read(content: bytes) -> Message:
    """The message that these bytes are; BadMessage if they are none."""
    try:
        plain = orjson.loads(content)
        return _message(plain)
    except (ValueError, TypeError, OverflowError, RecursionError, RunnerError) as error:
        raise BadMessage(str(error)) from None


def refused_to_send(reason: object) -> Refused:
    """What a handler said, and what cannot be sent."""
    return Refused(
        "OutcomeRefused", f"what the handler said cannot be sent from its process: {_said(reason)}"
    )


# --- writing


def _plain(message: Message) -> dict[str, Any]:
    match message:
        case Ready():
            return {"type": "ready"}
        case Progress(job, claim, report):
            return {"type": "progress", "job": job, "claim": claim, **orjson.loads(report)}
        case Save(job, claim, data):
            return {"type": "save", "job": job, "claim": claim, "data": data}
        case Ended(job, claim, outcome, completed_by_handler, left, uses):
            return {
                "type": "ended",
                "job": job,
                "claim": claim,
                "completed_by_handler": completed_by_handler,
                "outcome": _plain_outcome(outcome),
                "data": left.data,
                "follow_ups": plain_jobs(left.follow_ups),
                "uses": _plain_uses(uses or {}),
            }
        case _:
            assert_never(message)


def _plain_outcome(outcome: FromHandler) -> dict[str, Any]:
    match outcome:
        case Completed(result):
            return {"says": "completed", "result": result}
        case Raised(kind, message, traceback):
            return {
                "says": "raised",
                "type": printable(kind, 200),
                "reason": _said(message),
                "traceback": _cut(traceback),
            }
        case Refused(error_type, reason):
            return {"says": "refused", "type": error_type, "reason": _said(reason)}
        case Snooze(delay, data, until, reason, wake_on):
            return {
                "says": "snooze",
                "seconds": None if delay is None else parse_duration(delay).total_seconds(),
                "until": None if until is None else until.isoformat(),
                "data": None if data is None else encode(data, "the data of Snooze"),
                "reason": None if reason is None else _said(reason),
                "wake_on": wake_on,
            }
        case Repeat(after, data, wake_on):
            return {
                "says": "repeat",
                "seconds": parse_duration(after).total_seconds(),
                "data": None if data is None else encode(data, "the data of Repeat"),
                "wake_on": wake_on,
            }
        case Retry(after, reason):
            return {
                "says": "retry",
                "seconds": None if after is None else parse_duration(after).total_seconds(),
                "reason": _said(reason),
                "cause": _cut(outcome.cause_traceback),
            }
        case Fail(reason) | Cancel(reason):
            then = outcome.then if isinstance(outcome, Fail) else ()
            jobs = (then,) if isinstance(then, NewJob) else then
            try:
                check_may_follow(len(jobs), sum(map(bytes_of_job, jobs)))
            except ConfigurationError as error:
                why = f"{reason}; and what should follow: {error}"
                return _plain_outcome(Refused("OutcomeRefused", why))
            return {
                "says": "fail" if isinstance(outcome, Fail) else "cancel",
                "reason": _said(reason),
                "cause": _cut(outcome.cause_traceback),
                "then": plain_jobs(jobs),
            }
        case _:
            assert_never(outcome)


def _plain_uses(uses: Uses) -> list[list[object]]:
    return [
        [use, printable(field, 256), min(times, _MOST_TIMES)]
        for (use, field), times in list(uses.items())[:_MOST_USES]
        if use in USES
    ]


def _said(text: object) -> str:
    return printable(hide(str(text)))


def _cut(traceback: str) -> str:
    return printable(hide(traceback)[-_LONGEST_TRACEBACK:], _LONGEST_TRACEBACK)


# --- reading


def _message(plain: object) -> Message:
    match plain:
        case {"type": "ready"}:
            return Ready()
        case {
            "type": "progress",
            "job": int(job),
            "claim": int(claim),
            "fraction": None | int() | float() as fraction,
            "message": None | str() as text,
        }:
            said = None if text is None else printable(text, 1000)
            report = orjson.dumps({"fraction": fraction, "message": said}).decode()
            return Progress(job, claim, report)
        case {"type": "save", "job": int(job), "claim": int(claim), "data": str(data)}:
            return Save(job, claim, _checked(data))
        case {
            "type": "ended",
            "job": int(job),
            "claim": int(claim),
            "completed_by_handler": bool(completed),
            "outcome": outcome,
            "data": None | str() as data,
            "follow_ups": follow_ups,
            "uses": list(uses),
        }:
            left = Left(read_jobs(follow_ups), None if data is None else _checked(data))
            return Ended(job, claim, _outcome(outcome), completed, left, _uses(uses))
        case _:
            raise BadMessage("it is none that is known")


def _outcome(plain: object) -> FromHandler:
    match plain:
        case {"says": "completed", "result": str(result)}:
            try:
                return Completed(check(result.encode(), "the result"))
            except NotStorable as error:
                return Refused("ResultRefused", str(error))
        case {"says": "raised", "type": str(kind), "reason": str(reason), "traceback": str(trace)}:
            return Raised(kind, reason, trace)
        case {"says": "refused", "type": error_type, "reason": str(reason)} if (
            error_type in _REFUSALS
        ):
            return Refused(error_type, reason)
        case {
            "says": "snooze",
            "seconds": seconds,
            "until": until,
            "data": None | str() as data,
            "reason": None | str() as said,
            "wake_on": None | str() as wake_on,
        }:
            when: timedelta | datetime | None = None if seconds is None else _pause(seconds)
            if isinstance(until, str):
                when = datetime.fromisoformat(until)
            return Snooze(when, data=decode(data), reason=said, wake_on=wake_on)
        case {
            "says": "repeat",
            "seconds": seconds,
            "data": None | str() as data,
            "wake_on": None | str() as wake_on,
        }:
            return Repeat(_pause(seconds), decode(data), wake_on)
        case {
            "says": "retry",
            "seconds": seconds,
            "reason": str(reason),
            "cause": str(cause),
        }:
            after = None if seconds is None else _pause(seconds)
            return with_cause(Retry(after, reason), cause)
        case {
            "says": "fail" | "cancel" as word,
            "reason": str(reason),
            "cause": str(cause),
            "then": then,
        }:
            end = Fail(reason, read_jobs(then)) if word == "fail" else Cancel(reason)
            return with_cause(end, cause)
        case _:
            raise BadMessage("its outcome is none that is known")


def _checked(data: str) -> str:
    """A memory that Postgres can read as JSON."""
    orjson.loads(data)
    return check(data.encode(), "the data")


def _uses(plain: list[object]) -> Uses | None:
    if len(plain) > _MOST_USES:
        raise BadMessage("more uses of values than a memory has")
    uses: Uses = {}
    for each in plain:
        match each:
            case [use, str(field), int(times)] if use in USES and 0 < times <= _MOST_TIMES:
                uses[cast("Use", use), field[:256]] = times
            case _:
                raise BadMessage("a use of a value is none that is known")
    return uses or None


def _pause(seconds: object) -> timedelta:
    if not isinstance(seconds, (int, float)):
        raise BadMessage("a pause is no number")
    return timedelta(seconds=seconds)
