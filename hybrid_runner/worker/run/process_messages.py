"""What a process for handlers sends to its worker: JSON that is read with suspicion, since a
handler can write into its pipe whatever it likes.
"""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never, get_args

import orjson

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import RunnerError
from hybrid_runner.jsontext import NotStorable, check, decode, encode, printable
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Fail,
    HandlerOutcome,
    Raised,
    RefusalType,
    Refused,
    Retry,
    Snooze,
    with_cause,
)

HEADER = struct.Struct("!I")
LARGEST = 4 * 1024 * 1024
"""Bytes of one message: a result of the largest size, written as text inside of JSON, is half of
that.
"""
_LONGEST_TRACEBACK = 8000
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


class Ended(NamedTuple):
    """An attempt has ended."""

    job: int
    claim: int
    outcome: FromHandler
    completed_by_handler: bool


Message = Ready | Progress | Ended


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
    text = printable(str(reason))
    return Refused(
        "OutcomeRefused", f"what the handler said cannot be sent from its process: {text}"
    )


# --- writing


def _plain(message: Message) -> dict[str, Any]:
    match message:
        case Ready():
            return {"type": "ready"}
        case Progress(job, claim, report):
            return {"type": "progress", "job": job, "claim": claim, **orjson.loads(report)}
        case Ended(job, claim, outcome, completed_by_handler):
            return {
                "type": "ended",
                "job": job,
                "claim": claim,
                "completed_by_handler": completed_by_handler,
                "outcome": _plain_outcome(outcome),
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
                "reason": printable(message),
                "traceback": _cut(traceback),
            }
        case Refused(error_type, reason):
            return {"says": "refused", "type": error_type, "reason": printable(reason)}
        case Snooze(delay, data, until):
            return {
                "says": "snooze",
                "seconds": None if delay is None else parse_duration(delay).total_seconds(),
                "until": None if until is None else until.isoformat(),
                "data": None if data is None else encode(data, "the data of Snooze"),
            }
        case Retry(after, reason):
            return {
                "says": "retry",
                "seconds": None if after is None else parse_duration(after).total_seconds(),
                "reason": printable(str(reason)),
                "cause": _cut(outcome.cause_traceback),
            }
        case Fail(reason) | Cancel(reason):
            return {
                "says": "fail" if isinstance(outcome, Fail) else "cancel",
                "reason": printable(str(reason)),
                "cause": _cut(outcome.cause_traceback),
            }
        case _:
            assert_never(outcome)


def _cut(traceback: str) -> str:
    return printable(traceback[-_LONGEST_TRACEBACK:], _LONGEST_TRACEBACK)


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
        case {
            "type": "ended",
            "job": int(job),
            "claim": int(claim),
            "completed_by_handler": bool(completed),
            "outcome": outcome,
        }:
            return Ended(job, claim, _outcome(outcome), completed)
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
        }:
            memory = decode(data)
            if isinstance(until, str):
                return Snooze(until=datetime.fromisoformat(until), data=memory)
            return Snooze(_pause(seconds), data=memory)
        case {
            "says": "retry",
            "seconds": seconds,
            "reason": str(reason),
            "cause": str(cause),
        }:
            after = None if seconds is None else _pause(seconds)
            return with_cause(Retry(after, reason), cause)
        case {"says": "fail", "reason": str(reason), "cause": str(cause)}:
            return with_cause(Fail(reason), cause)
        case {"says": "cancel", "reason": str(reason), "cause": str(cause)}:
            return with_cause(Cancel(reason), cause)
        case _:
            raise BadMessage("its outcome is none that is known")


def _pause(seconds: object) -> timedelta:
    if not isinstance(seconds, (int, float)):
        raise BadMessage("a pause is no number")
    return timedelta(seconds=seconds)
