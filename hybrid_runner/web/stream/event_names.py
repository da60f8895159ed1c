"""The name of the event that lies between two snapshots of a job. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from hybrid_runner.model.job_events import JobEventName
from hybrid_runner.model.jobs import JobSnapshot, State


def event_name(before: JobSnapshot | None, now: JobSnapshot, at: datetime) -> JobEventName:
    """The job's state now, or a more exact word: retried, snoozed, cancelling, progress."""
    match now.state:
        case State.QUEUED:
            return _name_of_queued(before, now, at)
        case State.RUNNING if before is not None and before.claimed == now.claimed:
            if now.cancel_requested_at is not None and before.cancel_requested_at is None:
                return "cancelling"
            return "progress" if now.progress != before.progress else "running"
        case State.RUNNING:
            return "running"
        case State.COMPLETED:
            return "completed"
        case State.FAILED:
            return "failed"
        case State.CANCELLED:
            return "cancelled"
        case _:
            assert_never(now.state)


def _name_of_queued(before: JobSnapshot | None, now: JobSnapshot, at: datetime) -> JobEventName:
    """retried: an attempt was charged; snoozed: its handler delayed it; queued: new, released, or
    due for another reason.
    """
    charged, snoozes = 0, 0
    if before is not None:
        if before.state.final:
            return "queued"
        charged, snoozes = before.attempt - (before.state is State.RUNNING), before.snoozes
    if now.attempt > charged:
        return "retried"
    return "snoozed" if now.snoozes > snoozes and now.run_at > at else "queued"
