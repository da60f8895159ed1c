"""What has happened to a job between two looks at it. Pure: where it stood and where it stands go
in, a word comes out.
"""

from __future__ import annotations

from datetime import datetime

from hybrid_runner.model.jobs import JobSnapshot, State


def happening(before: JobSnapshot | None, now: JobSnapshot, at: datetime) -> str:
    """The name of the event: the state, or a closer word for it."""
    match now.state:
        case State.QUEUED:
            return _why_queued(before, now, at)
        case State.RUNNING if before is not None and before.claimed == now.claimed:
            if now.cancel_requested_at is not None and before.cancel_requested_at is None:
                return "cancelling"
            return "progress" if now.progress != before.progress else "running"
        case _:
            return now.state.value


def _why_queued(before: JobSnapshot | None, now: JobSnapshot, at: datetime) -> str:
    """retried: an attempt was charged; snoozed: its handler wants it to wait; queued: new,
    released, or due for another reason.
    """
    charged, snoozes = 0, 0
    if before is not None:
        if before.state.final:
            return "queued"
        charged, snoozes = before.attempt - (before.state is State.RUNNING), before.snoozes
    if now.attempt > charged:
        return "retried"
    return "snoozed" if now.snoozes > snoozes and now.run_at > at else "queued"
