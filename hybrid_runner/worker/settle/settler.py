"""Writes the outcomes of jobs in batches: while one batch is being written the next one
collects.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar, assert_never

from hybrid_runner.errors import EnqueueError, RowLocked, RunnerError, ValueRefused
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Finished, RefusalType, Requeued, Settlement, split
from hybrid_runner.policy.look_rate import DecayingRate
from hybrid_runner.policy.settlement import error_text
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.worker.loops import Outage

log = logging.getLogger("hybrid_runner.worker")
S = TypeVar("S", Finished, Requeued)

LARGEST_BATCH = 500
LOCKED_PAUSE = 1.0
"""Seconds between two questions whether locked rows have come free."""
_MOST_LINES = 10
"""So many dropped outcomes of one batch get a log line of their own."""
MOST_TEXT = 8 * 1024 * 1024
"""Bytes of results in one batch: jsonb can be six times as large, and a statement has a
time-out.
"""


class OutcomePort(Protocol):
    """What the settler asks of the database."""

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


class Gathering(NamedTuple):
    """A batch waits for more outcomes while more than `from_rate` a second come: until there are
    `enough`, and at most so many seconds.
    """

    seconds: float = 0.0
    from_rate: float = math.inf
    enough: int = 1


class Settler:
    """Keeps every settlement until Postgres has written it."""

    def __init__(
        self,
        outcomes: OutcomePort,
        *,
        most: int = LARGEST_BATCH,
        gathering: Gathering = Gathering(),  # noqa: B008  # it cannot change
    ) -> None:
        self._outcomes = outcomes
        self._most = most
        self._on_batch_settled: Callable[[BatchSettled], None] = _ignore
        self._on_room: Callable[[], None] = _ignore
        self._waiting: deque[Settlement] = deque()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()
        self._outage = Outage("settling")
        self._in_flight: list[Settlement] = []
        self._set_aside: list[Settlement] = []  # their rows are locked
        self._look_again = False
        self._gathering = gathering
        self._is_enough = asyncio.Event()
        self._recent = DecayingRate(memory=0.1)
        self.stale = 0

    @property
    def pending(self) -> int:
        """How many settlements Postgres does not have yet."""
        return len(self._waiting) + len(self._in_flight) + len(self._set_aside)

    def room(self) -> int:
        """How many more settlements it takes: more jobs than that should not be claimed."""
        return max(0, self._most - len(self._waiting) - len(self._in_flight) - len(self._set_aside))

    def claims(self) -> list[tuple[int, int]]:
        """Job id and claim number of each settlement that Postgres does not have yet."""
        kept = (*self._waiting, *self._in_flight, *self._set_aside)
        return [(settlement.claim.id, settlement.claim.number) for settlement in kept]

    def settle(self, settlement: Settlement) -> None:
        """Write this soon; returns at once."""
        self._waiting.append(settlement)
        if len(self._waiting) == self._gathering.enough:
            self._is_enough.set()
        self._none.clear()
        self._some.set()

    async def drained(self) -> None:
        """Wait until Postgres has everything."""
        await self._none.wait()

    async def run(
        self, on_batch_settled: Callable[[BatchSettled], None], on_room: Callable[[], None]
    ) -> None:
        """Write for ever. If it was started before, the batch that was being written comes first.

        `on_batch_settled` is called with what Postgres has, `on_room` when there is room for more.
        """
        self._on_batch_settled, self._on_room = on_batch_settled, on_room
        self._waiting.extendleft(reversed(self._in_flight))
        self._in_flight = []
        while True:
            if not self._waiting:
                await self._some.wait()
            self._some.clear()
            if self._look_again:
                await self._take_up()
            while self._waiting:
                batch = self._next_batch()
                self._in_flight = batch
                try:
                    await self._write(batch)
                except Exception:  # whoever runs this starts it again
                    self._waiting.extendleft(reversed(self._in_flight))
                    self._in_flight = []
                    raise
                self._in_flight = []
                if self._look_again:
                    await self._take_up()
                self._on_room()
                await self._gather(len(batch))
            if not self._set_aside:
                self._none.set()

    async def _gather(self, settled: int) -> None:
        """Under load, wait for more outcomes: each write waits for the disk, and inserts wait for
        each write.
        """
        now = time.monotonic()
        self._recent.add(settled, now)
        if (
            max(settled, len(self._waiting)) >= self._gathering.enough
            or self._recent.rate(now) < self._gathering.from_rate
        ):
            return
        self._is_enough.clear()
        alarm = asyncio.get_running_loop().call_later(self._gathering.seconds, self._is_enough.set)
        await self._is_enough.wait()
        alarm.cancel()

    def _next_batch(self) -> list[Settlement]:
        batch, text = [self._waiting.popleft()], 0
        while self._waiting and len(batch) < LARGEST_BATCH:
            text += _length(batch[-1])
            if text > MOST_TEXT:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _write(self, batch: list[Settlement]) -> None:
        again = False
        while True:
            try:
                await self._write_once(batch, again=again)
            except RowLocked as error:
                if batch := await self._free(batch, error):
                    continue
                return
            except (EnqueueError, ValueRefused) as error:
                if await self._isolate(batch, error):
                    return
            except RunnerError as error:
                # Postgres is away, or a right or a table is missing. Writing it again does no harm:
                # a claim is valid for one write.
                await self._outage.pause(error)
                again = True
            else:
                self._outage.over()
                return

    async def _write_once(self, batch: list[Settlement], *, again: bool) -> None:
        began = time.monotonic()
        requeues, finishes = split(batch)
        if requeues:
            put_back, left = _partition(requeues, await self._outcomes.requeue(requeues))
            self._tell(put_back, [], began)
            # Not put back: stale, or somebody asked to cancel it.
            finishes += [Finished(s.claim, State.CANCELLED, error=s.error) for s in left]
            batch[:] = finishes  # should this fail, the others are not written again
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

    async def _free(self, batch: list[Settlement], error: RowLocked) -> list[Settlement]:
        """Set those aside whose rows are locked, for a later try; returns the others."""
        try:
            locked = await self._outcomes.locked([settlement.claim.id for settlement in batch])
        except RunnerError as failure:
            await self._outage.pause(failure)
            return batch
        aside = [settlement for settlement in batch if settlement.claim.id in locked]
        if not aside:  # all have come free meanwhile
            return batch
        log.warning(
            "%d of %d outcomes wait: %s",
            len(aside),
            len(batch),
            error,
            extra=job_fields(aside[0].claim, "job.outcome_locked"),
        )
        if not self._set_aside:
            asyncio.get_running_loop().call_later(LOCKED_PAUSE, self._some_may_be_free)
        self._set_aside += aside
        self._in_flight = [
            settlement for settlement in self._in_flight if settlement.claim.id not in locked
        ]
        return [settlement for settlement in batch if settlement.claim.id not in locked]

    def _some_may_be_free(self) -> None:
        self._look_again = True
        self._some.set()

    async def _take_up(self) -> None:
        """Take up those whose rows have come free. Asks first: trying to write would hold up the
        other outcomes each time.
        """
        self._look_again = False
        try:
            locked = await self._outcomes.locked(
                [settlement.claim.id for settlement in self._set_aside]
            )
        except RunnerError as error:
            await self._outage.pause(error)
            locked = {settlement.claim.id for settlement in self._set_aside}
        self._waiting.extend(s for s in self._set_aside if s.claim.id not in locked)
        self._set_aside = [s for s in self._set_aside if s.claim.id in locked]
        if self._set_aside:
            asyncio.get_running_loop().call_later(LOCKED_PAUSE, self._some_may_be_free)

    async def _isolate(self, batch: list[Settlement], error: RunnerError) -> bool:
        """Find the settlement that Postgres refuses, so that it does not hold up the others.

        True when nothing of the batch is left to write; False to try the batch again.
        """
        if len(batch) > 1:
            for settlement in batch:
                await self._write([settlement])
            return True
        (refused,) = batch
        if _is_smallest(refused):
            # Nothing in it can be refused: a right is missing, or a schema is gone.
            await self._outage.pause(error)
            return False
        log.error(
            "Postgres refused the outcome: %s",
            error,
            extra=job_fields(refused.claim, "job.outcome_refused"),
        )
        reason = error_text(
            refused.claim,
            datetime.now(UTC),
            _refusal_type(refused),
            f"Postgres refused the outcome: {error}",
        )
        batch[0] = Finished(refused.claim, State.FAILED, error=reason)
        return False

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
        self._on_batch_settled(BatchSettled(moved, stale, began, time.monotonic()))
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


def _length(settlement: Settlement) -> int:
    """How many characters a handler's text in it has."""
    match settlement:
        case Finished():
            return len(settlement.result or "")
        case Requeued():
            return len(settlement.data or "")
        case _:
            assert_never(settlement)


def _is_smallest(settlement: Settlement) -> bool:
    """Whether nothing of the handler's is in it that Postgres could refuse."""
    match settlement:
        case Finished():
            return settlement.result is None and settlement.state is State.FAILED
        case Requeued():
            return False
        case _:
            assert_never(settlement)


def _refusal_type(settlement: Settlement) -> RefusalType:
    return "ResultRefused" if isinstance(settlement, Finished) else "OutcomeRefused"


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
    """Stands in until `run` is given a callback."""
