"""Writes one batch of outcomes, and says what Postgres has taken of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from hybrid_runner.errors import KeyHeld, RunnerError
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import (
    Finished,
    Repeated,
    Requeued,
    Settlement,
    by_follow_ups,
    split,
)
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields

log = logging.getLogger("hybrid_runner.worker")
S = TypeVar("S", Finished, Requeued, Repeated)

_CANCELLED: Final = State.CANCELLED
_MOST_LINES = 10
"""So many dropped outcomes of one batch get a log line of their own."""
_MOST_HELD = 5
"""Once the keys of so many follow-ups of a batch are held, its rest is for a later try: each
costs other outcomes a moment.
"""


class OutcomePort(Protocol):
    """What is asked of the database."""

    async def finish(self, batch: Sequence[Finished], /) -> set[int]:
        """Archive ended jobs and store their follow-ups; returns the ids of those whose claims were
        still valid. KeyHeld, and nothing is written, when the key of a follow-up is held.
        """

    async def requeue(self, batch: Sequence[Requeued], /) -> set[int]:
        """Put jobs back; returns the ids of those whose claims were still valid and that nobody had
        asked to cancel.
        """

    async def repeat(self, batch: Sequence[Repeated], /) -> set[int]:
        """Put jobs back for their next runs and store the follow-ups of those that ended; returns
        the same ids as `requeue`. KeyHeld as of `finish`.
        """

    async def wake_waiting(self, ids: Sequence[int], /) -> None:
        """Make those due that wait for a signal which is there already."""

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

        What is written is taken out of the batch, so that it is not written twice if the rest
        fails. KeyHeld: what is left in it has follow-ups whose keys are held.
        """
        for part in by_follow_ups(batch):
            try:
                await self._write_part(part, batch, again=again)
            except KeyHeld:
                await self._write_one_by_one(batch, again=again)

    async def _write_one_by_one(self, batch: list[Settlement], *, again: bool) -> None:
        """Write those whose follow-ups' keys nobody holds."""
        held = list[KeyHeld]()
        for settlement in [*batch]:
            try:
                await self._write_part([settlement], batch, again=again)
            except KeyHeld as error:
                held.append(error)
                if len(held) == _MOST_HELD:
                    break
        if held:
            raise held[0]

    async def _write_part(
        self, part: Sequence[Settlement], batch: list[Settlement], *, again: bool
    ) -> None:
        requeues, repeats, finishes = split(part)
        if requeues:
            began = time.monotonic()
            put_back, left = _partition(requeues, await self._outcomes.requeue(requeues))
            self._tell(put_back, [], began)
            # Not put back: stale, or somebody asked to cancel it, and has said why.
            cancelled = [
                Finished(s.claim, State.CANCELLED, error=None if s.why == "snooze" else s.error)
                for s in left
            ]
            _replace(batch, requeues, cancelled)
            finishes += cancelled
            await self._look_for_signals(put_back)
        if repeats:
            began = time.monotonic()
            repeated, over = _partition(repeats, await self._outcomes.repeat(repeats))
            self._tell(repeated, [], began)
            cancelled = [Finished(s.claim, State.CANCELLED) for s in over]
            _replace(batch, repeats, cancelled)
            finishes += cancelled
            await self._look_for_signals(repeated)
        if finishes:
            began = time.monotonic()
            moved = await self._outcomes.finish(finishes)
            if again and len(moved) < len(finishes):
                moved |= await self._outcomes.archived_before(
                    [s for s in finishes if s.claim.id not in moved]
                )
            ended, stale = _partition(finishes, moved)
            self._tell(await self._explained(ended), stale, began)
            _replace(batch, finishes, [])

    async def _look_for_signals(self, put_back: Sequence[Requeued | Repeated]) -> None:
        """Only now, after the commit: a signal that came meanwhile found nobody waiting."""
        ids = [s.claim.id for s in put_back if s.wake_on is not None]
        if not ids:
            return
        try:
            await self._outcomes.wake_waiting(ids)
        except RunnerError as error:  # the duty `signals` looks for them
            log.info(
                "for %d jobs that wait it could not be asked whether their signals are there: %s",
                len(ids),
                error,
                extra=log_event("signals.unasked"),
            )

    async def _explained(self, ended: list[Finished]) -> list[Finished]:
        """Add why a job was cancelled while it ran: the reason is in its row only."""
        unexplained = [s.claim.id for s in ended if s.state is _CANCELLED and s.error is None]
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


def _replace(batch: list[Settlement], old: Sequence[Settlement], new: Sequence[Settlement]) -> None:
    if len(old) == len(batch):
        batch[:] = new
    else:
        gone = set(map(id, old))
        batch[:] = [*(s for s in batch if id(s) not in gone), *new]


def _ignore(*_: object) -> None:
    """Stands in until the settler runs."""
