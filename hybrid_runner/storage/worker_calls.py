"""The storage calls of workers: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from hybrid_runner.errors import DatabaseError
from hybrid_runner.model.claims import (
    CancelledInQueue,
    Claim,
    ClaimResult,
    OrphanedJob,
    Registered,
    TakenEnds,
)
from hybrid_runner.model.jobs import LARGEST_JOB, MAX_ATTEMPTS, State
from hybrid_runner.model.outcomes import Finished, Requeued
from hybrid_runner.model.upkeep import BloatCause, Blocker, Pruned, QueueDepth, WorkerDemand
from hybrid_runner.storage.connections.statements import Fetches, Rows, fetch, fetch_value
from hybrid_runner.storage.times import with_zone


class KindLimits(NamedTuple):
    """What a handler says of the jobs of its kind."""

    kind: str
    max_attempts: int
    timeout: timedelta | None
    are_ceilings: bool = True
    """Jobs cannot ask for more; otherwise they are for jobs that say nothing."""


class Kinds:
    """What a worker can run, as the arrays that claim_jobs takes."""

    def __init__(self, limits: Sequence[KindLimits]) -> None:
        self.limits = limits
        self.names = [each.kind for each in limits]
        self.max_attempts = [each.max_attempts for each in limits]
        self.timeouts = [each.timeout for each in limits]
        self.ceilings = [each.are_ceilings for each in limits]
        self.number = blake2b("\n".join(sorted(self.names)).encode(), digest_size=8).hexdigest()
        """The same for whoever knows the same kinds."""

    def without(self, names: Container[str]) -> Kinds:
        """All but these."""
        return Kinds([each for each in self.limits if each.kind not in names])


Lanes = tuple[Sequence[datetime], Sequence[int]]
"""Where a look starts in each of the ten lanes: behind this run_at and id."""

WHOLE_LANES: Lanes = ([datetime(1969, 12, 31, tzinfo=UTC)] * 10, [0] * 10)
"""From the start of each lane: no run_at is before 1970."""


async def claim_jobs(
    on: Fetches,
    queue: str,
    kinds: Kinds,
    slots: int,
    worker_id: str,
    claim: int,
    lanes: Lanes = WHOLE_LANES,
    left_out: Sequence[int] = (),
    most_bytes: int = LARGEST_JOB,
) -> ClaimResult:
    """Claim up to `slots` due jobs that lie behind where the lanes start, but those `left_out`;
    `claim` is a number that was never used before. Jobs of more bytes come without what they carry.
    """
    rows = await fetch(
        on,
        "claim_jobs",
        queue,
        kinds.names,
        slots,
        worker_id,
        kinds.max_attempts,
        kinds.timeouts,
        *lanes,
        claim,
        kinds.ceilings,
        left_out,
        most_bytes,
    )
    at = rows[0]["looked_at"]
    return ClaimResult([] if rows[0]["id"] is None else [Claim(*row) for row in rows], at)


async def find_due(
    on: Fetches, queue: str, kinds: Kinds, most: int, lanes: Lanes, left_out: Sequence[int]
) -> list[Claim]:
    """The jobs that claim_jobs would take, as if they were claimed, without payloads."""
    rows = await fetch(on, "find_due", queue, kinds.names, most, *lanes, left_out)
    return [_claim(tuple(row)) for row in rows]


async def claim_job(
    on: Fetches, due: Claim, kinds: Kinds, worker_id: str, number: int
) -> Claim | None:
    """Claim one due job, without its payload; None when it is not there to be taken."""
    _, max_attempts, timeout, are_ceilings = kinds.limits[kinds.names.index(due.kind)]
    rows = await fetch(
        on,
        "claim_job",
        due.id,
        due.queue,
        worker_id,
        max_attempts,
        timeout,
        number,
        are_ceilings,
    )
    return Claim(*rows[0]) if rows else None


async def refuse_job(on: Fetches, claim: Claim, error: str, *, unreadable: bool) -> bool:
    """End a job as failed that could not be claimed; what it carries is kept if it is readable."""
    if unreadable:
        await forget_payload(on, claim)
    return bool(await fetch(on, "refuse_job", claim.id, claim.number, error))


async def read_payload(on: Fetches, claim: Claim) -> tuple[str, str | None] | None:
    """Payload and data of a claimed job; None when it is no longer this claim's."""
    rows = await fetch(on, "read_payload", claim.id, claim.number)
    return (rows[0]["payload"], rows[0]["data"]) if rows else None


async def forget_payload(on: Fetches, claim: Claim) -> None:
    """Take out of a job what cannot be read."""
    await fetch(on, "forget_payload", claim.id, claim.number)


async def finish_jobs(on: Fetches, batch: Sequence[Finished]) -> set[int]:
    """Archive ended jobs; the ids that were still ours."""
    rows = await fetch(
        on,
        "finish_jobs",
        [f.claim.id for f in batch],
        [f.claim.number for f in batch],
        _unless_all(State.COMPLETED, [f.state for f in batch]),
        _unless_all("null", [f.result for f in batch]),
        _unless_all(None, [f.error for f in batch]),
    )
    return {row[0] for row in rows}


def _unless_all(usual: Any, values: list[Any]) -> list[Any] | None:
    """The values, or None when all are the usual one: most batches are alike, and arrays cost time
    to send.
    """
    return None if values.count(usual) == len(values) else values


async def requeue_jobs(
    on: Fetches, batch: Sequence[Requeued], traceparents: Sequence[str | None] | None = None
) -> set[int]:
    """Put jobs back, with the traces that were begun for them; the ids that were still ours and not
    being cancelled.
    """
    rows = await fetch(
        on,
        "requeue_jobs",
        [r.claim.id for r in batch],
        [r.claim.number for r in batch],
        [r.delay for r in batch],
        [r.charged for r in batch],
        [r.data for r in batch],
        [r.error for r in batch],
        traceparents,
        _unless_all(False, [r.why == "snooze" for r in batch]),
    )
    return {row[0] for row in rows}


async def archived_before(on: Fetches, batch: Sequence[Finished]) -> set[int]:
    """The ids among these claims that are archived already: an earlier settle's answer was lost."""
    rows = await fetch(
        on, "archived_before", [f.claim.id for f in batch], [f.claim.number for f in batch]
    )
    return {row[0] for row in rows}


async def completed_claims(on: Fetches, claims: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of these ids and claims whose jobs are archived as completed under that claim."""
    rows = await fetch(
        on, "completed_claims", [job_id for job_id, _ in claims], [claim for _, claim in claims]
    )
    return {(row[0], row[1]) for row in rows}


async def find_reasons(on: Fetches, ids: Sequence[int]) -> dict[int, str]:
    """The last error of each of these ended jobs, as JSON text."""
    return {row[0]: row[1] for row in await fetch(on, "find_reasons", ids)}


async def release_lost(
    on: Fetches,
    queue: str,
    worker_id: str,
    known: Sequence[tuple[int, int]],
    only: Sequence[int] | None = None,
) -> dict[int, bool]:
    """Put back what a claim took whose answer was lost, or `only` these; `known` is what this
    worker does have, as ids and claims.
    """
    ids, claims = [job_id for job_id, _ in known], [claim for _, claim in known]
    rows = await fetch(on, "release_lost", queue, worker_id, ids, claims, only)
    return {row[0]: row[1] for row in rows}


async def find_unanswered(
    on: Fetches, queue: str, worker_id: str, known: Sequence[tuple[int, int]]
) -> list[int]:
    """The jobs that `release_lost` would put back."""
    ids, claims = [job_id for job_id, _ in known], [claim for _, claim in known]
    return [row[0] for row in await fetch(on, "find_unanswered", queue, worker_id, ids, claims)]


async def next_due(on: Fetches, queue: str) -> timedelta | None:
    """How long until the next job of the queue is due; None when none waits for its time."""
    delay: timedelta | None = await fetch_value(on, "next_due", queue)
    return delay


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


async def record_progress(on: Fetches, batch: Sequence[tuple[int, int, str]]) -> set[int]:
    """Write (id, claim, progress); the ids that were still ours."""
    rows = await fetch(
        on, "record_progress", *(list(column) for column in zip(*batch, strict=True))
    )
    return {row[0] for row in rows}


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
) -> Registered:
    """Write down who works; `queues` is JSON text, `kinds_hash` the same for whoever knows the same
    kinds.
    """
    (row,) = await fetch(
        on, "register_worker", worker_id, host, pid, version, queues, lease, kinds_hash, list(kinds)
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
    return [OrphanedJob(_claim(row[:-1]), row[-1]) for row in (tuple(row) for row in rows)]


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
        CancelledInQueue(_claim(row[:-3]), State(row[-3]), row[-2], row[-1]) for row in archived
    ]
    return TakenEnds([row[1] for row in rows], rows[0][0] if rows else None, ends)


async def delete_unreported_ends(on: Fetches, most: int, older_than: timedelta) -> None:
    """Delete ends that nobody has reported in so long."""
    await fetch(on, "delete_unreported_ends", most, older_than)


async def delete_reported_ends(on: Fetches, ids: Sequence[int], taken_at: datetime) -> None:
    """Those that were taken at that time have been reported."""
    await fetch(on, "delete_reported_ends", ids, taken_at)


def _claim(columns: tuple[Any, ...]) -> Claim:
    """Of a job that may never have been claimed: until then it has no `max_attempts`
    but its own.
    """
    claim = Claim(*columns)
    claim.max_attempts = claim.max_attempts or MAX_ATTEMPTS
    return claim


async def find_locked(on: Fetches, ids: Sequence[int]) -> set[int]:
    """The ids among these that somebody else holds a lock on right now."""
    return {row[0] for row in await fetch(on, "find_locked", ids)}


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
