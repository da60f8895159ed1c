"""Reads the answer of sql/queries/beat.sql: rows of (what, queue, value)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.model.news import (
    CancelRequested,
    DeclaredDead,
    DutyGiven,
    EndsUnreported,
    HeartbeatNews,
    JobHung,
    JobsOverdue,
    MuteExpired,
    NextDue,
    ProofSent,
    QueueMember,
    RowGone,
    WorkerDied,
    WorkerSilent,
)


def parse(what: str, queue: str, value: str) -> HeartbeatNews:
    """The news that one row brings; ValueError for an unknown word."""
    make = _MAKE.get(what)
    if make is None:
        raise ValueError(
            f"beat.sql says {what!r}, and no type of hybrid_runner.model.news stands for it"
        )
    return make(queue, value)


def _queue_member(queue: str, value: str) -> QueueMember:
    kinds, _, worker_id = value.partition(" ")
    return QueueMember(queue, worker_id, kinds)


def _row_gone(_: str, value: str) -> RowGone:
    job_id, claim = map(int, value.split(" "))
    return RowGone(job_id, claim)


def _delay(seconds: str) -> timedelta:
    return timedelta(seconds=max(0.0, float(seconds)))


_MAKE: dict[str, Callable[[str, str], HeartbeatNews]] = {
    "queue_member": _queue_member,
    "cancel_requested": lambda _, value: CancelRequested(int(value)),
    "row_gone": _row_gone,
    "declared_dead": lambda _, __: DeclaredDead(),
    "proof_sent": lambda _, value: ProofSent(value),
    "mute_expired": lambda queue, _: MuteExpired(queue),
    "jobs_overdue": lambda queue, _: JobsOverdue(queue),
    "next_due": lambda queue, value: NextDue(queue, _delay(value)),
    "worker_died": lambda _, value: WorkerDied(value),
    "worker_silent": lambda _, value: WorkerSilent(_delay(value)),
    "job_hung": lambda _, value: JobHung(int(value)),
    "duty_given": lambda _, value: DutyGiven(value),
    "ends_unreported": lambda _, __: EndsUnreported(),
}
