"""What becomes of a job once its attempt has ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

import orjson

from hybrid_runner.durations import parse_duration
from hybrid_runner.jsontext import NotStorable, encode, printable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Fail,
    FinalState,
    Finished,
    Outcome,
    Raised,
    RefusalType,
    Refused,
    Requeued,
    Retry,
    Settlement,
    Snooze,
    Stopped,
)
from hybrid_runner.policy.retry import RetryPolicy


def decide(
    claim: Claim, outcome: Outcome, policy: RetryPolicy, *, now: datetime, chance: float
) -> Settlement:
    """Completed, Fail and Cancel end the job; Snooze, Retry and an exception put it back while it
    has attempts and time left.
    """
    match outcome:
        case Completed(result):
            return Finished(claim, State.COMPLETED, result=result)
        case Fail(reason):
            return _ended_by_handler(claim, outcome, State.FAILED, "Fail", reason, now)
        case Cancel(reason):
            return _ended_by_handler(claim, outcome, State.CANCELLED, "Cancel", reason, now)
        case Refused(error_type, reason):
            return Finished(claim, State.FAILED, error=error_text(claim, now, error_type, reason))
        case Snooze():
            return _snoozed(claim, outcome, now)
        case Retry(after, reason):
            pause = None if after is None else parse_duration(after)
            failed = _ended_by_handler(claim, outcome, State.FAILED, "Retry", reason, now)
            return _again(failed, pause, policy, now, chance)
        case Raised(kind, message, traceback, exception):
            error = error_text(claim, now, kind, message, traceback)
            return _again(
                Finished(claim, State.FAILED, error=error, exception=exception),
                None,
                policy,
                now,
                chance,
            )
        case Stopped.SHUTDOWN | Stopped.NO_PLACE:
            return Requeued(claim, timedelta(0), charged=False, why="release")
        case Stopped.CANCEL | Stopped.ROW_GONE:
            # cancel() has written the reason; without a row, nothing is written.
            return Finished(claim, State.CANCELLED)
        case _:
            assert_never(outcome)


def _ended_by_handler(
    claim: Claim,
    said: Fail | Cancel | Retry,
    state: FinalState,
    error_type: str,
    reason: str,
    now: datetime,
) -> Finished:
    error = error_text(claim, now, error_type, reason, said.cause_traceback)
    return Finished(claim, state, error=error, exception=said.__cause__)


def _snoozed(claim: Claim, snooze: Snooze, now: datetime) -> Settlement:
    try:
        memory = None if snooze.data is None else encode(snooze.data, "the data of Snooze")
    except NotStorable as error:
        return Finished(
            claim, State.FAILED, error=_refusal(claim, now, "OutcomeRefused", str(error))
        )
    if snooze.until is not None:
        delay = max(timedelta(0), snooze.until - now)
    else:
        assert snooze.delay is not None  # noqa: S101  # its constructor demands one of the two
        delay = parse_duration(snooze.delay)
    return _later(Requeued(claim, delay, charged=False, data=memory, why="snooze"), now)


def _again(
    failed: Finished, pause: timedelta | None, policy: RetryPolicy, now: datetime, chance: float
) -> Settlement:
    """One more attempt if there is one left, else the job has failed."""
    claim = failed.claim
    if claim.attempt >= claim.max_attempts:
        return failed
    delay = policy.delay(claim.attempt, chance) if pause is None else pause
    return _later(Requeued(claim, delay, charged=True, error=failed.error), now)


def _later(requeued: Requeued, now: datetime) -> Settlement:
    claim = requeued.claim
    if claim.finish_by is None or now + requeued.delay <= claim.finish_by:
        return requeued
    message = f"finish_by ({claim.finish_by.isoformat()}) passes before the next attempt"
    return Finished(claim, State.FAILED, error=_refusal(claim, now, "FinishByPassed", message))


def _refusal(claim: Claim, now: datetime, error_type: RefusalType, message: str) -> str:
    return error_text(claim, now, error_type, message)


def error_text(
    claim: Claim, now: datetime, error_type: str, message: str, traceback: str = ""
) -> str:
    """One entry of a job's `errors`, as JSON text that Postgres accepts whatever was raised."""
    entry: dict[str, object] = {
        "at": now.isoformat(),
        "attempt": claim.attempt,
        "type": printable(error_type, 200),
        "message": printable(str(message)),
    }
    if traceback:
        entry["traceback"] = printable(traceback[-8000:], 8000)
    return orjson.dumps(entry).decode()
