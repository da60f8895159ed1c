"""Writes one batch of outcomes, and says what Postgres has taken of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Finished, Requeued, Settlement, split
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields

log = logging.getLogger("hybrid_runner.worker")
S = TypeVar("S", Finished, Requeued)

_MOST_LINES = 10
"""So many dropped outcomes of one batch get a log line of their own."""


class OutcomePort(Protocol):
    """What is asked of the database."""

    async def finish(self, batch: Sequence[Finished], /) -> set[int]:
        """Archive ended jobs; returns the ids of those whose claims were still valid."""

    async def requeue(self, batch: Sequence[Requeued], /) -> set[int]:
        """Put jobs back; returns the ids of those whose claims were still valid and that nobody had
        asked to cancel.
        """

    async def archived_before(self, batch: Sequence[Finished], /) -> set[int]:
        """Which of these an earlier write has archived, whose answer was lost."""

    async def locked(self, ids: Sequence[int], /) -> set[int]:
        """Which of these jobs have rows that another transaction has locked."""

    async def reasons(self, ids: Sequence[int], /) -> Mapping[int, str]:
        """The last error of each of these ended jobs, as JSON text."""


class BatchWriter:
    """Writes batches, one after the other. Errors are the caller's."""

    def __init__(self, outcomes: OutcomePort) -> None:
        self._outcomes = outcomes
        self.on_batch_settled: Callable[[BatchSettled], None] = _ignore
        """Written by the settler: called with what Postgres has."""
        self.stale = 0

    async def write(self, batch: list[Settlement], *, again: bool) -> None:
        """Write it; `again`: a part of it may have been written before, whose answer was lost.

        What has been put back is taken out of the batch, so that it is not written twice if the
        rest fails.
        """
        began = time.monotonic()
        requeues, finishes = split(batch)
        if requeues:
            put_back, left = _partition(requeues, await self._outcomes.requeue(requeues))
            self._tell(put_back, [], began)
            # Not put back: stale, or somebody asked to cancel it.
            finishes += [Finished(s.claim, State.CANCELLED, error=s.error) for s in left]
            batch[:] = finishes
        if finishes:
            began = time.monotonic()
            moved = await self._outcomes.finish(finishes)
            if again and len(moved) < len(finishes):
                moved |= await self._outcomes.archived_before(
                    [s for s in finishes if s.claim.id not in moved]
                )
            ended, stale = _partition(finishes, moved)
            self._tell(await self._explained(ended), stale, began)

    async def _explained(self, ended: list[Finished]) -> list[Finished]:
        """Add why a job was cancelled while it ran: the reason is in its row only."""
        unexplained = [s.claim.id for s in ended if s.state is State.CANCELLED and s.error is None]
        if not unexplained:
            return ended
        try:
            reasons = await self._outcomes.reasons(unexplained)
        except RunnerError as error:  # they have ended all the same
            log.info(
                "why %d jobs were cancelled could not be read: %s",
                len(unexplained),
                error,
                extra=log_event("job.cancel_reasons_unread"),
            )
            return ended
        return [
            s._replace(error=s.error or reasons.get(s.claim.id))
            if s.state is State.CANCELLED
            else s
            for s in ended
        ]

    def _tell(
        self, moved: Sequence[Settlement], not_moved: Sequence[Finished], began: float
    ) -> None:
        stale = [
            settlement for settlement in not_moved if not settlement.claim.completed_by_handler
        ]
        if len(stale) < len(not_moved):
            moved = [
                *moved,
                *(
                    Finished(s.claim, State.COMPLETED)
                    for s in not_moved
                    if s.claim.completed_by_handler
                ),
            ]
        self.on_batch_settled(BatchSettled(moved, stale, began, time.monotonic()))
        self.stale += len(stale)
        for settlement in stale[:_MOST_LINES]:
            log.warning(
                "claim %d is no longer valid: its outcome (%s) was dropped",
                settlement.claim.number,
                settlement.state.value,
                extra=job_fields(settlement.claim, "job.outcome_dropped"),
            )
        if len(stale) > _MOST_LINES:
            log.warning(
                "%d more outcomes were dropped because their claims are no longer valid",
                len(stale) - _MOST_LINES,
                extra=log_event("job.outcome_dropped"),
            )


def _partition(settlements: list[S], moved: set[int]) -> tuple[list[S], list[S]]:
    """The settlements whose jobs were moved, and the others."""
    if len(moved) == len(settlements):
        return settlements, []
    # Of two claims of one job, which a crash of Postgres can bring about, only the later one
    # counts.
    latest = {s.claim.id: s for s in sorted(settlements, key=lambda s: s.claim.number)}
    counts = {id(s) for job_id, s in latest.items() if job_id in moved}
    return [s for s in settlements if id(s) in counts], [
        s for s in settlements if id(s) not in counts
    ]


def _ignore(*_: object) -> None:
    """Stands in until the settler runs."""
