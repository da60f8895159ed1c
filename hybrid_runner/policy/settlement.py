"""What becomes of a job once its attempt has ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, assert_never

import orjson

from hybrid_runner.durations import duration_text, parse_duration
from hybrid_runner.jsontext import NotStorable, encode, printable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.outcomes import (
    NOTHING_LEFT,
    Cancel,
    Completed,
    Expired,
    Fail,
    Left,
    Outcome,
    Raised,
    RefusalType,
    Refused,
    Repeat,
    Retry,
    RowUnread,
    Snooze,
    Stopped,
)
from hybrid_runner.model.settlements import FinalState, Finished, Repeated, Requeued, Settlement
from hybrid_runner.policy.rules import Rules, finish_by, finish_within, max_duration, max_snoozes
from hybrid_runner.secrets import hide

_LAST_LOOK = timedelta(seconds=1)
"""So long before `finish_by` the last attempt starts, which stops it then."""
_SHORTEST_UNREAD, _LONGEST_UNREAD = timedelta(seconds=1), timedelta(seconds=60)
"""Pauses of jobs whose rows cannot be read."""
_COMPLETED: Final = State.COMPLETED
_LONGEST_WAIT = timedelta(days=3650)


def decide(
    claim: Claim,
    outcome: Outcome,
    rules: Rules,
    *,
    now: datetime,
    chance: float,
    left: Left = NOTHING_LEFT,
) -> Settlement:
    """Completed, Fail and Cancel end the job; Snooze, Retry and an exception put it back while it
    has attempts and time left.
    """
    if isinstance(outcome, Completed):
        return completed(claim, outcome, left)
    match outcome:
        case Fail(reason, then):
            failed = _ended_by_handler(claim, outcome, State.FAILED, "Fail", reason, now)
            return failed._replace(follow_ups=(then,) if isinstance(then, NewJob) else tuple(then))
        case Cancel(reason):
            return _ended_by_handler(claim, outcome, State.CANCELLED, "Cancel", reason, now)
        case Refused() | Expired():
            return _not_by_handler(claim, outcome, now)
        case Snooze():
            return _snoozed(claim, outcome, rules, now, chance, left)
        case Repeat():
            return _repeated(claim, outcome, rules, now, left)
        case Retry() | Raised():
            return _again(claim, outcome, rules, now, chance)
        case RowUnread() | Stopped.SHUTDOWN | Stopped.NO_PLACE:
            return _released(claim, outcome, rules, now)
        case Stopped.CANCEL | Stopped.ROW_GONE:
            # cancel() has written the reason; without a row, nothing is written.
            return Finished(claim, State.CANCELLED)
        case _:
            assert_never(outcome)


def completed(claim: Claim, outcome: Completed, left: Left) -> Finished:
    """What becomes of most jobs, whatever the time is: as a case of the above, which asks for the
    time, it would take five times as long.
    """
    return Finished(claim, _COMPLETED, outcome.result, None, None, left.follow_ups)


def _not_by_handler(claim: Claim, said: Refused | Expired, now: datetime) -> Finished:
    if isinstance(said, Expired):
        error = error_text(claim, now, "Expired", said.reason)
        return Finished(claim, State.CANCELLED, error=error)
    return Finished(claim, State.FAILED, error=error_text(claim, now, said.type, said.reason))


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


def _snoozed(
    claim: Claim, snooze: Snooze, rules: Rules, now: datetime, chance: float, left: Left
) -> Settlement:
    try:
        memory = _memory(snooze, left)
    except NotStorable as error:
        return _refused(claim, now, "OutcomeRefused", str(error))
    allowed = max_snoozes(claim, rules.budgets)
    if allowed is not None and claim.snoozes >= allowed:
        spent = duration_text(max(timedelta(0), now - (claim.began_at or claim.started_at)))
        message = f"max_snoozes ({allowed}) is used up after {spent}"
        return _used_up(claim, now, message, snooze.reason or "")
    if snooze.until is not None:
        delay = max(timedelta(0), snooze.until - now)
    elif snooze.delay is not None:
        delay = parse_duration(snooze.delay)
    elif snooze.wake_on is not None and (
        max_duration(claim, rules.budgets) or finish_by(claim, rules.budgets)
    ):
        delay = _LONGEST_WAIT  # the budget is its time-out
    else:
        delay = rules.pace.delay(claim.snoozes, chance)
    why = None if snooze.reason is None else error_text(claim, now, "Snooze", snooze.reason)
    requeued = Requeued(claim, delay, False, memory, why, why="snooze", wake_on=snooze.wake_on)
    return _in_time(requeued, rules, now, snooze.reason or "")


def _repeated(claim: Claim, repeat: Repeat, rules: Rules, now: datetime, left: Left) -> Settlement:
    try:
        memory = _memory(repeat, left)
    except NotStorable as error:
        return _refused(claim, now, "OutcomeRefused", str(error))
    # What finish_within has made of it is over with this run.
    until = claim.finish_by if finish_within(claim, rules.budgets) is None else None
    delay = parse_duration(repeat.after)
    if until is not None:
        left_over = until - _LAST_LOOK - now
        if repeat.wake_on is not None and left_over > timedelta(0):
            delay = min(delay, left_over)  # till then it can be woken
        elif now + delay >= until:  # this was the last run, and it is completed
            return Finished(claim, State.COMPLETED, result="null", follow_ups=left.follow_ups)
    return Repeated(claim, delay, memory, until, left.follow_ups, repeat.wake_on)


def _memory(said: Snooze | Repeat, left: Left) -> str | None:
    """What the handler says the memory is, or what it made of it."""
    if said.data is None:
        return left.data
    return encode(said.data, f"the data of {type(said).__name__}")


def _again(
    claim: Claim, said: Retry | Raised, rules: Rules, now: datetime, chance: float
) -> Settlement:
    """One more attempt if there is one left, else the job has failed."""
    match said:
        case Retry(after, reason):
            traceback = said.cause_traceback
            failed = _ended_by_handler(claim, said, State.FAILED, "Retry", reason, now)
        case Raised(kind, message, traceback, exception):
            after, reason = None, f"{kind}: {message}"
            error = error_text(claim, now, kind, message, traceback)
            failed = Finished(claim, State.FAILED, error=error, exception=exception)
        case _:
            assert_never(said)
    if claim.attempt >= claim.max_attempts:
        return failed
    delay = rules.retry.delay(claim.attempt, chance) if after is None else parse_duration(after)
    requeued = Requeued(claim, delay, True, error=failed.error)
    settled = _in_time(requeued, rules, now, reason, traceback)
    if isinstance(settled, Finished):  # the log has the exception, as if no attempt were left
        return settled._replace(exception=failed.exception)
    return settled


def _released(claim: Claim, why: RowUnread | Stopped, rules: Rules, now: datetime) -> Settlement:
    """Back, uncharged: at once, or for half as long as a row has been tried, so that the pauses
    grow.
    """
    until = finish_by(claim, rules.budgets)
    back = Requeued(claim, timedelta(0), charged=False, why="release", finish_by=until)
    if isinstance(why, Stopped):
        return back
    tried = now - (claim.began_at or claim.started_at)
    delay = max(_SHORTEST_UNREAD, min(tried / 2, _LONGEST_UNREAD))
    error = error_text(claim, now, "RowUnread", why.reason)
    return _in_time(back._replace(delay=delay, error=error), rules, now, why.reason)


def _in_time(
    requeued: Requeued, rules: Rules, now: datetime, reason: str, traceback: str = ""
) -> Settlement:
    """Due at the latest when its time is over, so that the last look is then; past that the job has
    failed.
    """
    claim, budgets = requeued.claim, rules.budgets
    if (until := finish_by(claim, budgets)) is not None:
        left = until - _LAST_LOOK - now
        # An attempt that is charged is no look: it is not begun to be stopped a second later.
        if left <= timedelta(0) or (requeued.charged and requeued.delay > left):
            message = f"finish_by ({until.isoformat()}) passes before the next attempt"
            message = _with_reason(message, reason)
            return _refused(claim, now, "FinishByPassed", message, traceback)
        requeued = requeued._replace(delay=min(requeued.delay, left), finish_by=until)
    if (allowed := max_duration(claim, budgets)) is not None:
        left = (claim.began_at or claim.started_at) + allowed - now
        if left <= timedelta(0):
            message = (
                f"max_duration ({duration_text(allowed)}) is used up after {claim.snoozes}"
                f" {'snooze' if claim.snoozes == 1 else 'snoozes'}"
            )
            return _used_up(claim, now, message, reason, traceback)
        requeued = requeued._replace(delay=min(requeued.delay, left))
    return requeued


def _used_up(
    claim: Claim, now: datetime, message: str, reason: str, traceback: str = ""
) -> Finished:
    return _refused(claim, now, "BudgetUsedUp", _with_reason(message, reason), traceback)


def _with_reason(message: str, reason: str) -> str:
    return f"{message}: {reason}" if reason else message


def _refused(
    claim: Claim, now: datetime, error_type: RefusalType, message: str, traceback: str = ""
) -> Finished:
    error = error_text(claim, now, error_type, message, traceback)
    return Finished(claim, State.FAILED, error=error)


def error_text(
    claim: Claim, now: datetime, error_type: str, message: str, traceback: str = ""
) -> str:
    """Return an entry of a job's `errors`, as JSON text that Postgres accepts and without the
    secrets of this process.
    """
    entry: dict[str, object] = {
        "at": now.isoformat(),
        "attempt": claim.attempt,
        "type": printable(error_type, 200),
        "message": printable(hide(str(message))),
    }
    if traceback:
        entry["traceback"] = printable(hide(traceback)[-8000:], 8000)
    return orjson.dumps(entry).decode()
