"""The storage calls of workers, but for those about claimed jobs, which are in claim_calls.py: each
runs the file of sql/queries that has its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from hybrid_runner.errors import DatabaseError
from hybrid_runner.model.claims import CancelledInQueue, OrphanedJob, Registered, TakenEnds
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.upkeep import BloatCause, Blocker, Pruned, QueueDepth, WorkerDemand
from hybrid_runner.storage.claim_calls import claim_from
from hybrid_runner.storage.connections.statements import Fetches, Rows, fetch, fetch_value
from hybrid_runner.storage.times import with_zone


async def join_sleepers(on: Fetches, queues: Sequence[str]) -> None:
    """This session sleeps on these queues; it is to be committed before their bells are opened."""
    await fetch(on, "join_sleepers", queues)


async def leave_sleepers(on: Fetches) -> None:
    """This session sleeps on no queue."""
    await fetch(on, "leave_sleepers")


async def open_bell(on: Fetches, queue: str) -> None:
    """From now on every insert rings."""
    await fetch(on, "open_bell", queue)


async def mute_bell(
    on: Fetches, queue: str, lasting: timedelta, mode: str, *, leave_sleepers: bool
) -> bool:
    """Inserts are quiet for so long; whether somebody sleeps and was rung for help."""
    milliseconds = round(lasting.total_seconds() * 1000)
    return bool(await fetch_value(on, "mute_bell", queue, milliseconds, mode, leave_sleepers))


async def leave_bell(on: Fetches, queue: str, worker_id: str, *, is_muted: bool) -> None:
    """Tell the others that this worker ends; if it may have muted the bell, open it and ring for
    help.
    """
    await fetch(on, "leave_bell", queue, worker_id, is_muted)


async def mark_in_flight(on: Fetches) -> int:
    """A number above all transactions in flight."""
    return int(await fetch_value(on, "mark_in_flight"))


async def inserts_ended(on: Fetches, below: int) -> bool:
    """Whether all transactions below a number have ended."""
    return bool(await fetch_value(on, "inserts_ended", below))


async def find_unannounced(on: Fetches, queue: str, ids: Sequence[int]) -> tuple[bool, int]:
    """Whether the queue's bell is open, and how many of these jobs were inserted as due."""
    (row,) = await fetch(on, "find_unannounced", queue, ids)
    return bool(row["is_open"]), int(row["jobs"])


async def open_queue(on: Fetches, queue: str, ring_within: timedelta) -> None:
    """Make the queue known."""
    await fetch(on, "open_queue", queue, ring_within)


async def register_worker(
    on: Fetches,
    worker_id: str,
    host: str,
    pid: int,
    version: str,
    queues: str,
    lease: timedelta,
    kinds_hash: str = "",
    kinds: Sequence[str] = (),
    schedules: Sequence[str] = (),
) -> Registered:
    """Write down who works; `queues` is JSON text, `kinds_hash` the same for whoever knows the same
    kinds, `schedules` the names of those that it declares.
    """
    (row,) = await fetch(
        on,
        "register_worker",
        worker_id,
        host,
        pid,
        version,
        queues,
        lease,
        kinds_hash,
        list(kinds),
        list(schedules),
    )
    return Registered(*row)


async def leave_queues(on: Fetches, worker_id: str, first_claim: int) -> None:
    """This worker takes no more jobs."""
    await fetch(on, "leave_queues", worker_id, first_claim)


async def retire_worker(on: Fetches, worker_id: str, first_claim: int, *, in_order: bool) -> None:
    """This worker ended; if not in order, others put back what it leaves."""
    await fetch(on, "retire_worker", worker_id, first_claim, in_order)


async def find_lost(on: Fetches, most: int, after_id: int = -(2**63)) -> list[OrphanedJob]:
    """Running jobs whose claim no living worker has, by id."""
    return _lost(await fetch(on, "find_lost", most, after_id))


async def find_hung(
    on: Fetches, worker_id: str, ids: Sequence[int], timeout_grace: timedelta
) -> list[OrphanedJob]:
    """Those of this worker's jobs that are past their time-out by more than `timeout_grace`."""
    return _lost(await fetch(on, "find_hung", worker_id, ids, timeout_grace))


def _lost(rows: Rows) -> list[OrphanedJob]:
    return [OrphanedJob(claim_from(row[:-2]), *row[-2:]) for row in (tuple(row) for row in rows)]


async def take_unreported_ends(on: Fetches, most: int) -> TakenEnds:
    """Jobs that ended without a worker, without payload and data; nobody else is given them for a
    minute.
    """
    try:
        found = await fetch(on, "take_unreported_ends", most, True)  # as the SQL has it
    except DatabaseError:  # one of them cannot be read
        found = await fetch(on, "take_unreported_ends", most, False)  # as above
    rows = [tuple(map(with_zone, row)) for row in found]
    archived = [row[1:] for row in rows if row[2] is not None]
    ends = [
        CancelledInQueue(claim_from(row[:-3]), State(row[-3]), row[-2], row[-1]) for row in archived
    ]
    return TakenEnds([row[1] for row in rows], rows[0][0] if rows else None, ends)


async def delete_unreported_ends(on: Fetches, most: int, older_than: timedelta) -> None:
    """Delete ends that nobody has reported in so long."""
    await fetch(on, "delete_unreported_ends", most, older_than)


async def delete_reported_ends(on: Fetches, ids: Sequence[int], taken_at: datetime) -> None:
    """Those that were taken at that time have been reported."""
    await fetch(on, "delete_reported_ends", ids, taken_at)


async def forget_dead(on: Fetches, longer_than: timedelta) -> None:
    """Remove workers that have been dead for longer."""
    await fetch(on, "forget_dead", longer_than)


async def make_archive_partitions(on: Fetches, days_ahead: int) -> int:
    """Have partitions ready; how many were made."""
    made: int = await fetch_value(on, "make_archive_partitions", days_ahead)
    return made


async def keep_jobs(on: Fetches, keeps: Sequence[tuple[State, str, timedelta]]) -> None:
    """How long ended jobs are kept, by (state, kind); the kind '' is all that are not named."""
    if keeps:
        states, kinds, times = zip(*keeps, strict=True)
        await fetch(on, "keep_jobs", states, times, kinds)


async def prune(on: Fetches, most: int) -> list[Pruned]:
    """Forget what is no longer kept, so many partitions at most; what was done."""
    return [Pruned(*row) for row in await fetch(on, "prune", most)]


async def find_growth(on: Fetches, longer_than: timedelta) -> list[BloatCause]:
    """What lets tables grow, and has for longer."""
    return [BloatCause(*row) for row in await fetch(on, "find_growth", longer_than)]


async def find_blockers(on: Fetches, pid: int) -> list[Blocker]:
    """Who holds what that session waits for, the longest first."""
    return [Blocker(*row) for row in await fetch(on, "find_blockers", pid)]


class MissingJob(NamedTuple):
    """What a row of a reconciler's query says of a job that is missing; JSON texts."""

    key: str | None
    """None: a column that it is made of has no value."""
    payload: str
    data: str | None


async def find_missing_jobs(
    on: Fetches, query: str, key_parts: Sequence[str], most: int
) -> list[MissingJob]:
    """What of an application's query has no live job, in random order."""
    rows = await fetch(on, "find_missing_jobs", query, list(key_parts), most)
    return [MissingJob(*row) for row in rows]


async def restore_jobs(on: Fetches, kind: str, queue: str, jobs: Sequence[NewJob]) -> set[str]:
    """Store jobs of one kind, each with a key; the keys of those that no live job had."""
    rows = await fetch(
        on,
        "restore_jobs",
        kind,
        queue,
        [job.key for job in jobs],
        [job.payload for job in jobs],
        [job.data for job in jobs],
    )
    return {row[0] for row in rows}


async def add_duties(on: Fetches, duties: Sequence[tuple[str, timedelta]]) -> None:
    """Duties of the application's own, by name and period, are given out from now on."""
    if duties:
        names, everys = zip(*duties, strict=True)
        await fetch(on, "add_duties", names, everys)


async def renew_duty(on: Fetches, duty: str, holder: str) -> bool:
    """Go on doing a duty that one worker holds; False: somebody else does it by now."""
    return bool(await fetch(on, "renew_duty", duty, holder))


async def release_duty(on: Fetches, duty: str, holder: str) -> None:
    """Let somebody else do this duty."""
    await fetch(on, "release_duty", duty, holder)


async def queue_depths(on: Fetches) -> list[QueueDepth]:
    """How each queue stands."""
    return [QueueDepth(*row) for row in await fetch(on, "queue_depths")]


async def horizon_age(on: Fetches) -> float:
    """For how many seconds vacuum has been kept from cleaning up."""
    seconds: float = await fetch_value(on, "horizon_age")
    return seconds


async def notify_queue_used(on: Fetches) -> float:
    """The share of the server's queue of notifications that is full."""
    share: float = await fetch_value(on, "notify_queue_used")
    return share


async def scale(on: Fetches, queue: str | None, usual_slots: int) -> list[WorkerDemand]:
    """How many workers each queue, or one, could use."""
    return [WorkerDemand(*row) for row in await fetch(on, "scale", queue, usual_slots)]
