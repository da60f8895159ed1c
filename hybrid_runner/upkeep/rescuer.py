"""Puts running jobs back that no living worker runs, or ends them if no attempt is left."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_never

from hybrid_runner.errors import DatabaseError, DatabaseUnavailable, EnqueueError, RunnerError
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim, OrphanedJob
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Raised
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement, split
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.policy.rules import Rules
from hybrid_runner.policy.settlement import decide, error_text
from hybrid_runner.storage import claim_calls, worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields

log = logging.getLogger("hybrid_runner.upkeep")

BATCH = 500
_MOST_LINES = 10
"""So many jobs of one batch get a log line of their own."""
REMEMBERED = timedelta(minutes=1)
"""How long the row of a dead worker stays, so that a later rescue finds what it claimed last."""


class Rescuer:
    """Settles jobs as if their handlers had raised.

    The attempt counts, and the kind's backoff and `max_attempts` apply. A job that its worker
    settled meanwhile is left as it is.
    """

    def __init__(
        self,
        registry: Registry,
        on_rescued: Callable[[Sequence[Settlement]], None] = lambda _: None,
        traces: Callable[[Sequence[Requeued]], Sequence[str | None] | None] = lambda _: None,
        traces_after: Callable[[Sequence[Finished]], Sequence[str | None] | None] = lambda _: None,
    ) -> None:
        self._on_rescued = on_rescued
        self._traces = traces
        self._traces_after = traces_after
        self._registry = registry
        self._busy = asyncio.Lock()
        self.rescued = 0

    async def rescue(self, on: Fetches) -> None:
        """Put back or end all jobs whose worker is dead, unknown, or was started again under its
        id.
        """
        async with self._busy:  # a death and the duty may ask for it at the same time
            orphans = await worker_calls.find_lost(on, BATCH)
            while orphans:
                await self._settle(on, [self._decide(one, _died(one)) for one in orphans])
                # Go on behind the last one, even if some stay: locked rows must not hide others.
                last = orphans[-1].claim.id
                orphans = (
                    await worker_calls.find_lost(on, BATCH, last) if len(orphans) == BATCH else []
                )
            await worker_calls.forget_dead(on, REMEMBERED)

    async def end_hung(
        self, on: Fetches, worker_id: str, ids: Sequence[int], timeout_grace: timedelta
    ) -> None:
        """Put back or end jobs that this living worker should have ended at their time-outs."""
        hung = await worker_calls.find_hung(on, worker_id, ids, timeout_grace)
        await self._settle(on, [self._decide(one, _hung(one)) for one in hung])

    def _decide(self, orphan: OrphanedJob, raised: Raised) -> Settlement:
        kind = self._registry.get(orphan.claim.kind)
        rules = kind.rules if kind is not None else Rules()
        return decide(orphan.claim, raised, rules, now=orphan.found_at, chance=random.random())

    async def _settle(self, on: Fetches, settlements: Sequence[Settlement]) -> int:
        """Write them; returns how many jobs were moved.

        A job that Postgres refuses, or whose row is locked, does not hold up the others.
        """
        try:
            moved = await self._write(on, settlements)
        except RunnerError as error:
            if len(settlements) < 2:
                log.warning(
                    "a job of a dead worker cannot be rescued yet: %s",
                    error,
                    extra=job_fields(settlements[0].claim, "job.rescue_failed"),
                )
                if isinstance(error, DatabaseUnavailable):
                    raise
                return await self._end(on, settlements[0].claim, error)
            free = await self._free(on, settlements)
            return sum([await self._settle(on, [settlement]) for settlement in free])
        self.rescued += len(moved)
        self._on_rescued(moved)
        log_all = log.isEnabledFor(logging.DEBUG)
        for settlement in moved if log_all else moved[:_MOST_LINES]:
            _log(settlement)
        if len(moved) > _MOST_LINES and not log_all:
            log.warning(
                "rescued %d more jobs",
                len(moved) - _MOST_LINES,
                extra=log_event("job.rescued"),
            )
        return len(moved)

    async def _end(self, on: Fetches, claim: Claim, error: RunnerError) -> int:
        """If its row is at fault, it can never be put back: it has failed."""
        fault = fault_of(error)
        if fault not in (Fault.UNFIT_ROW, Fault.UNREADABLE_ROW):
            return 0
        reason = error_text(
            claim, datetime.now(UTC), "PayloadUnreadable", f"it could not be put back: {error}"
        )
        try:
            moved = await claim_calls.refuse_job(
                on, claim, reason, unreadable=fault is Fault.UNREADABLE_ROW
            )
        except (DatabaseError, EnqueueError):
            return 0
        if not moved:
            return 0
        ended = Finished(claim, State.FAILED, error=reason)
        self.rescued += 1
        self._on_rescued([ended])
        _log(ended)
        return 1

    async def _free(self, on: Fetches, settlements: Sequence[Settlement]) -> list[Settlement]:
        locked = await claim_calls.find_locked(
            on, [settlement.claim.id for settlement in settlements]
        )
        return [settlement for settlement in settlements if settlement.claim.id not in locked]

    async def _write(self, on: Fetches, settlements: Sequence[Settlement]) -> list[Settlement]:
        requeues, _, finishes = split(settlements)  # no job of a dead worker ends a run
        back = (
            await claim_calls.requeue_jobs(on, requeues, self._traces(requeues))
            if requeues
            else set()
        )
        # Not put back: settled meanwhile, or somebody asked to cancel it.
        finishes += [
            Finished(s.claim, State.CANCELLED, error=s.error)
            for s in requeues
            if s.claim.id not in back
        ]
        on_ends = self._registry.on_ends
        has_clean_ups = any(s.claim.kind in on_ends for s in finishes)
        traces = self._traces_after(finishes) if has_clean_ups else None
        ended = await claim_calls.finish_jobs(on, finishes, traces, on_ends) if finishes else set()
        return [
            *(s for s in requeues if s.claim.id in back),
            *(s for s in finishes if s.claim.id in ended),
        ]


def _died(orphan: OrphanedJob) -> Raised:
    return Raised(
        "WorkerLost",
        f"worker {orphan.worker_id} is gone: it died, or nothing was heard of it"
        " for longer than its lease",
    )


def _hung(orphan: OrphanedJob) -> Raised:
    seconds = orphan.claim.timeout_seconds or 0
    return Raised(
        "TimeoutError",
        f"ran longer than its time-out of {seconds:g} s, and its worker did not end it: is its loop"
        " blocked?",
    )


def _log(settlement: Settlement) -> None:
    claim = settlement.claim
    match settlement:
        case Finished(state=state):
            level, what = logging.ERROR if state is State.FAILED else logging.WARNING, state.value
        case Requeued(delay=delay) | Repeated(delay=delay):
            level, what = logging.WARNING, f"due in {delay.total_seconds():.1f} s"
        case _:
            assert_never(settlement)
    log.log(
        level,
        "rescued after attempt %d of %d: %s",
        claim.attempt,
        claim.max_attempts,
        what,
        extra=job_fields(claim, "job.rescued"),
    )
