"""Reads the answers of sql/queries/ask_news.sql and ask_queues.sql: what, queue and value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import orjson

from hybrid_runner.model.news import (
    CancelRequested,
    DutyGiven,
    EndsUnreported,
    HeartbeatNews,
    JobHung,
    JobsOverdue,
    LanesRead,
    LiveWorker,
    LookAgain,
    MuteExpired,
    NextDue,
    NextTick,
    RowGone,
    ShortestLease,
    WorkerDied,
)


def parse(what: str, queue: str, value: str) -> HeartbeatNews:
    """The news that one row brings; ValueError for an unknown word."""
    make = _MAKE.get(what)
    if make is None:
        raise ValueError(
            f"a heartbeat was told {what!r}, and no type of hybrid_runner.model.news stands for it"
        )
    return make(queue, value)


def _live_worker(_: str, value: str) -> LiveWorker:
    worker_id, kinds, queues = orjson.loads(value)
    return LiveWorker(worker_id, kinds, tuple(queues))


def _row_gone(_: str, value: str) -> RowGone:
    job_id, claim = map(int, value.split(" "))
    return RowGone(job_id, claim)


def _delay(seconds: str) -> timedelta:
    return timedelta(seconds=max(0.0, float(seconds)))


_MAKE: dict[str, Callable[[str, str], HeartbeatNews]] = {
    "live_worker": _live_worker,
    "cancel_requested": lambda _, value: CancelRequested(int(value)),
    "row_gone": _row_gone,
    "mute_expired": lambda queue, _: MuteExpired(queue),
    "jobs_overdue": lambda queue, value: JobsOverdue(queue, _delay(value)),
    "next_due": lambda queue, value: NextDue(queue, _delay(value)),
    "lanes_read": lambda _, value: LanesRead(_delay(value)),
    "worker_died": lambda _, value: WorkerDied(value),
    "shortest_lease": lambda _, value: ShortestLease(_delay(value)),
    "look_again": lambda _, value: LookAgain(_delay(value)),
    "job_hung": lambda _, value: JobHung(int(value)),
    "duty_given": lambda _, value: DutyGiven(value),
    "next_tick": lambda _, value: NextTick(timedelta(seconds=float(value))),
    "ends_unreported": lambda _, __: EndsUnreported(),
}
