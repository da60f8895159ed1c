"""What an attempt leaves beside its outcome: its memory, and the jobs that are to follow."""

from __future__ import annotations

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.new_jobs import Find, follow_ups
from hybrid_runner.handlers.notes import Notes
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.outcomes import (
    NOTHING_LEFT,
    Completed,
    Fail,
    Left,
    Outcome,
    Refused,
    Repeat,
    Snooze,
)
from hybrid_runner.worker.run.attempt import Attempt


def leave(attempt: Attempt, outcome: Outcome, find: Find) -> tuple[Outcome, Left]:
    """The outcome and what is left beside it; another outcome if that cannot be stored."""
    notes, left = attempt.notes, attempt.left
    if notes is None and type(outcome) is Completed:  # most attempts
        return outcome, NOTHING_LEFT
    if left is None:  # it ran in this process
        if notes is None and isinstance(outcome, (Snooze, Repeat)):
            notes = Notes(attempt.claim, attempt.kind)
        if notes is not None:
            outcome, left = notes.leave(outcome)
    elif left.follow_ups and isinstance(outcome, (Completed, Repeat)):
        try:
            left = left._replace(follow_ups=follow_ups(find, left.follow_ups))
        except ConfigurationError as error:
            return Refused("OutcomeRefused", str(error)), NOTHING_LEFT
    if isinstance(outcome, Fail) and outcome.then:
        return _failed(outcome, find), NOTHING_LEFT
    return outcome, left or NOTHING_LEFT


def _failed(outcome: Fail, find: Find) -> Fail | Refused:
    then = (outcome.then,) if isinstance(outcome.then, NewJob) else outcome.then
    try:
        vars(outcome)["then"] = follow_ups(find, then)
    except ConfigurationError as error:
        return Refused("OutcomeRefused", f"{outcome.reason}; and what should follow: {error}")
    return outcome
