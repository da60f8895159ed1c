"""Writes the outcomes of jobs in batches: while one batch is being written the next one
collects.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from hybrid_runner.errors import EnqueueError, KeyHeld, RowLocked, RunnerError, ValueRefused
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.policy.look_rate import DecayingRate
from hybrid_runner.policy.refused_outcome import reduced
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.settle.batch_writer import BatchWriter, OutcomePort
from hybrid_runner.worker.settle.set_aside import LockedRows, Refusals

log = logging.getLogger("hybrid_runner.worker")

LARGEST_BATCH = 500
MOST_TEXT = 8 * 1024 * 1024
"""Bytes of results in one batch: jsonb can be six times as large, and a statement has a
time-out.
"""
_ROW = 1024
"""So many of them as a row of its own takes the time of."""
_MOST_ABORTS = 2
"""So often a batch is tried that Postgres gives up before it is written in parts."""
_MOST_REFUSALS = 20
"""After so many refusals in a batch of which nothing was taken, the rest is set aside untried."""


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
        self._writer = BatchWriter(outcomes)
        self._most = most
        self._on_room: Callable[[], None] = lambda: None
        self._waiting: deque[Settlement] = deque()
        self._alone: deque[Settlement] = deque()
        """Refused before: to be written one by one."""
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()
        self._only_refused = asyncio.Event()
        self._only_refused.set()
        self._outage = Outage("settling")
        self._in_flight: list[Settlement] = []
        self._locked = LockedRows(self._some.set)
        self._refusals = Refusals(self._some.set)
        self._unanswered = False
        """Whether the loop ended while something was being written."""
        self._refused_now = self._taken_now = 0  # of the batch that is being written
        self._gathering = gathering
        self._is_enough = asyncio.Event()
        self._recent = DecayingRate(memory=0.1)

    @property
    def pending(self) -> int:
        """How many settlements Postgres does not have yet."""
        return self._unwritten() + len(self._refusals)

    @property
    def refused(self) -> int:
        """How many of them wait because Postgres refused them."""
        return self._refusals.known()

    def refusal(self) -> str:
        """Which jobs' outcomes Postgres refuses, and why; empty if none. From any thread."""
        return self._refusals.summary()

    @property
    def stale(self) -> int:
        """How many came too late: their claims were no longer valid."""
        return self._writer.stale

    def room(self) -> int:
        """How many more settlements it takes: more jobs than that should not be claimed.

        As many again may have been refused: those must not keep others from being claimed.
        """
        refused = max(0, len(self._refusals) - self._most)
        return max(0, self._most - self._unwritten() - refused)

    def claims(self) -> list[tuple[int, int]]:
        """Job id and claim number of each settlement that Postgres does not have yet."""
        kept = (
            *self._waiting,
            *self._alone,
            *self._in_flight,
            *self._locked,
            *self._refusals,
        )
        return [(settlement.claim.id, settlement.claim.number) for settlement in kept]

    def _unwritten(self) -> int:
        return len(self._waiting) + len(self._alone) + len(self._in_flight) + len(self._locked)

    def settle(self, settlement: Settlement) -> None:
        """Write this soon; returns at once."""
        self._waiting.append(settlement)
        if len(self._waiting) == self._gathering.enough:
            self._is_enough.set()
        self._none.clear()
        self._only_refused.clear()
        self._some.set()

    async def drained(self) -> None:
        """Wait until Postgres has everything."""
        await self._none.wait()

    async def drained_at_last(self) -> None:
        """Try what Postgres refuses once more, then wait until it has all that it does not
        refuse.
        """
        self._only_refused.clear()
        self._alone.extend(self._refusals.take_all())
        self._some.set()
        await self._only_refused.wait()

    async def run(
        self, on_batch_settled: Callable[[BatchSettled], None], on_room: Callable[[], None]
    ) -> None:
        """Write for ever. If it was started before, the batch that was being written comes first.

        `on_batch_settled` is called with what Postgres has, `on_room` when there is room for more.
        """
        self._writer.on_batch_settled, self._on_room = on_batch_settled, on_room
        self._restore()
        self._some.set()  # its flag may have been lowered by a run that was cancelled
        while True:
            if not self._waiting and not self._alone:
                await self._some.wait()
            self._some.clear()
            await self._take_up()
            while self._waiting or self._alone:
                written = await self._write_next()
                await self._take_up()
                self._on_room()
                await self._gather(written)
            if not self._locked:
                self._only_refused.set()
                if not self._refusals:
                    self._none.set()

    async def _write_next(self) -> int:
        """Write a batch, and one of those that were refused before; returns how many they were."""
        batch = self._next_batch() if self._waiting else []
        alone = [self._alone.popleft()] if self._alone else []
        self._in_flight = [*batch, *alone] if alone else batch
        size = len(self._in_flight)
        self._refused_now = self._taken_now = 0
        again = self._unanswered
        try:
            await self._write(batch, again=again)
            if alone:
                self._in_flight = alone
                await self._write(alone, again=again, aborts=_MOST_ABORTS)
        except Exception:  # whoever runs this starts it again
            self._restore()
            raise
        self._in_flight = []
        self._unanswered = self._unanswered and bool(self._waiting)
        return size

    def _restore(self) -> None:
        self._unanswered = bool(self._in_flight)
        self._waiting.extendleft(reversed(self._in_flight))
        self._in_flight = []

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

    async def _write(
        self, batch: list[Settlement], *, again: bool = False, aborts: int = 0
    ) -> None:
        """Write a batch; what Postgres refuses of it is found and set aside."""
        whole = [*batch]
        while batch:
            try:
                await self._writer.write(batch, again=again)
            except RowLocked as error:
                before = len(batch)
                batch = await self._free(batch, error)
                if len(batch) < before:
                    continue
                refusal: RunnerError = error
            except RunnerError as error:
                if (fault := fault_of(error)) is Fault.OUTAGE:
                    # Writing it again does no harm: a claim is valid for one write.
                    await self._outage.pause(error)
                    again = True
                    continue
                refusal = error
                if fault is not Fault.STATEMENT:
                    aborts = _MOST_ABORTS
            else:
                self._outage.over()
                self._taken_now += len(whole)
                self._note_taken(whole)
                return
            aborts += 1
            if aborts >= _MOST_ABORTS:
                await self._isolate(batch, refusal, again=again)
                return

    def _note_taken(self, batch: Sequence[Settlement]) -> None:
        if len(batch) == 1:
            # What was refused for the same reason is probably taken now.
            self._waiting.extend(self._refusals.take_alike(batch[0]))
        self._refusals.forget(batch)

    def _leave_flight(self, batch: Sequence[Settlement]) -> None:
        """These are written or set aside: should the rest fail, they are not written again."""
        left = {id(settlement.claim) for settlement in batch}
        self._in_flight = [s for s in self._in_flight if id(s.claim) not in left]

    async def _free(self, batch: list[Settlement], error: RowLocked) -> list[Settlement]:
        """Set those aside whose rows are locked, for a later try; returns the others."""
        if isinstance(error, KeyHeld):  # all others are written
            for settlement in batch:
                self._set_aside(settlement, error)
            self._leave_flight(batch)
            return []
        try:
            locked = await self._outcomes.locked([settlement.claim.id for settlement in batch])
        except RunnerError as failure:
            await self._outage.pause(failure)
            return batch
        aside = [settlement for settlement in batch if settlement.claim.id in locked]
        if not aside:  # all have come free meanwhile, or it is another row that a trigger waits for
            return batch
        log.warning(
            "%d of %d outcomes wait: %s",
            len(aside),
            len(batch),
            error,
            extra=job_fields(aside[0].claim, "job.outcome_locked"),
        )
        self._locked.add(aside)
        self._leave_flight(aside)
        return [settlement for settlement in batch if settlement.claim.id not in locked]

    async def _take_up(self) -> None:
        """Take up what was set aside and may be written now."""
        if self._refusals.is_due:
            self._alone.extend(self._refusals.take_due())
        if not self._locked.is_due:
            return
        # Asks first: trying to write would hold up the other outcomes each time.
        ids = [settlement.claim.id for settlement in self._locked]
        try:
            locked = await self._outcomes.locked(ids)
        except RunnerError as error:
            await self._outage.pause(error)
            locked = set(ids)
        self._waiting.extend(self._locked.take_all_but(locked))

    async def _isolate(self, batch: list[Settlement], error: RunnerError, *, again: bool) -> None:
        """Find what Postgres refuses, by halves, so that it does not hold up the others."""
        if len(batch) == 1:
            await self._refuse(batch[0], error)
            return
        if self._refused_now >= _MOST_REFUSALS and not self._taken_now:
            for settlement in batch:
                self._set_aside(settlement, error)
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            await self._write([*half], again=again, aborts=_MOST_ABORTS)
            self._leave_flight(half)

    async def _refuse(self, settlement: Settlement, error: RunnerError) -> None:
        """Write less of it if it is a value that is refused; what is left is tried again later.

        What somebody's trigger refuses is kept whole, whatever the trigger calls it.
        """
        is_of_value = isinstance(error, (EnqueueError, ValueRefused))
        if is_of_value and not error.in_foreign_function:
            less = reduced(settlement, str(error), datetime.now(UTC))
            if less is not None:
                if self._refusals.is_new(settlement):
                    log.error(
                        "Postgres refused the outcome: %s",
                        error,
                        extra=job_fields(settlement.claim, "job.outcome_refused"),
                    )
                await self._write([less])
                return
        self._set_aside(settlement, error)

    def _set_aside(self, settlement: Settlement, error: RunnerError) -> None:
        self._refused_now += 1
        is_new = self._refusals.is_new(settlement)
        pause = self._refusals.add(settlement, error)
        if is_new and self._refused_now <= _MOST_REFUSALS:
            log.error(
                "Postgres refuses the outcome, which is kept and tried again, first in %.0f s: %s",
                pause,
                error,
                extra=job_fields(settlement.claim, "job.outcome_set_aside"),
            )


def _length(settlement: Settlement) -> int:
    """How many characters a handler's text in it has."""
    match settlement:
        case Finished():
            return len(settlement.result or "") + _length_of_follow_ups(settlement)
        case Requeued():
            return len(settlement.data or "")
        case Repeated():
            return len(settlement.data or "") + _length_of_follow_ups(settlement)
        case _:
            assert_never(settlement)


def _length_of_follow_ups(settlement: Finished | Repeated) -> int:
    return sum(_ROW + len(job.payload) + len(job.data or "") for job in settlement.follow_ups)
