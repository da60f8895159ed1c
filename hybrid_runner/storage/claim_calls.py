"""The storage calls about claimed jobs: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from hybrid_runner.model.claims import Claim, ClaimResult
from hybrid_runner.model.jobs import LARGEST_JOB, MAX_ATTEMPTS, State
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.follow_ups import follow_up_texts


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


async def begin_successor(on: Fetches, claim: Claim) -> str | None:
    """The key that a job has from now on which waited for it; None: it may not begin, and this
    claim is void; empty: somebody holds the job, and the claim may stay.
    """
    key: str | None = await fetch_value(on, "begin_successor", claim.id, claim.number)
    return key


async def find_due(
    on: Fetches, queue: str, kinds: Kinds, most: int, lanes: Lanes, left_out: Sequence[int]
) -> list[Claim]:
    """The jobs that claim_jobs would take, as if they were claimed, without payloads."""
    rows = await fetch(on, "find_due", queue, kinds.names, most, *lanes, left_out)
    return [claim_from(tuple(row)) for row in rows]


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


async def finish_jobs(
    on: Fetches,
    batch: Sequence[Finished],
    traceparents: Sequence[str | None] | None = None,
    on_ends: Mapping[str, str] = MappingProxyType({}),
    *,
    put_off: bool = False,
) -> set[int]:
    """Archive ended jobs, and store what follows them, in the traces that were begun for them; the
    ids that were still ours. `on_ends` are what the caller knows of kinds. `put_off`: rows of
    attached tables are written later.
    """
    kinds = list({f.claim.kind for f in batch})
    columns = (
        [f.claim.id for f in batch],
        [f.claim.number for f in batch],
        _unless_all(State.COMPLETED, [f.state for f in batch]),
        _unless_all("null", [f.result for f in batch]),
        _unless_all(None, [f.error for f in batch]),
    )
    its_on_ends = _unless_all(None, [on_ends.get(kind) for kind in kinds])
    if traceparents or its_on_ends or any(f.follow_ups for f in batch):
        following = traceparents, follow_up_texts(batch, traceparents), kinds, its_on_ends
        rows = await fetch(
            on, "finish_followed_jobs", *columns, *following, _attached(batch), put_off
        )
    else:
        rows = await fetch(on, "finish_jobs", *columns, kinds, _attached(batch), put_off)
    return {row[0] for row in rows}


def _attached(batch: Sequence[Settlement]) -> bool:
    """Whether one of the jobs is about a row of an attached table."""
    return any(each.claim.source is not None for each in batch)


def _unless_all(usual: Any, values: list[Any]) -> list[Any] | None:
    """The values, or None when all are the usual one: most batches are alike, and arrays cost time
    to send.
    """
    return None if values.count(usual) == len(values) else values


async def requeue_jobs(
    on: Fetches,
    batch: Sequence[Requeued],
    traceparents: Sequence[str | None] | None = None,
    *,
    put_off: bool = False,
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
        _unless_all("retry", [r.why for r in batch]),
        _unless_all(None, [r.finish_by for r in batch]),
        _unless_all(None, [r.wake_on for r in batch]),
        _attached(batch),
        put_off,
    )
    return {row[0] for row in rows}


async def repeat_jobs(
    on: Fetches,
    batch: Sequence[Repeated],
    traceparents: Sequence[str | None] | None = None,
    next_traceparents: Sequence[str | None] | None = None,
    *,
    put_off: bool = False,
) -> set[int]:
    """Put jobs back for their next runs, in the traces that were begun for these, and store what
    follows those that ended; the ids that were still ours and not being cancelled.
    """
    rows = await fetch(
        on,
        "repeat_jobs",
        [r.claim.id for r in batch],
        [r.claim.number for r in batch],
        [r.delay for r in batch],
        [r.data for r in batch],
        [r.finish_by for r in batch],
        follow_up_texts(batch, traceparents) or None,
        next_traceparents,
        _attached(batch),
        put_off,
        _unless_all(None, [r.wake_on for r in batch]),
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


async def record_progress(on: Fetches, batch: Sequence[tuple[int, int, str]]) -> set[int]:
    """Write (id, claim, progress); the ids that were still ours."""
    rows = await fetch(
        on, "record_progress", *(list(column) for column in zip(*batch, strict=True))
    )
    return {row[0] for row in rows}


async def save_data(on: Fetches, batch: Sequence[tuple[int, int, str]]) -> set[int]:
    """Write (id, claim, data); the ids that were still ours."""
    rows = await fetch(on, "save_data", *(list(column) for column in zip(*batch, strict=True)))
    return {row[0] for row in rows}


def claim_from(columns: tuple[Any, ...]) -> Claim:
    """Of a job that may never have been claimed: until then it has no `max_attempts`
    but its own.
    """
    claim = Claim(*columns)
    claim.max_attempts = claim.max_attempts or MAX_ATTEMPTS
    return claim


async def find_locked(on: Fetches, ids: Sequence[int]) -> set[int]:
    """The ids among these that somebody else holds a lock on right now."""
    return {row[0] for row in await fetch(on, "find_locked", ids)}
