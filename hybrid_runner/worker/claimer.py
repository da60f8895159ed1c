"""Looks for due jobs of one queue whenever there is a reason, as many as there are free slots, until a look is not full."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from hybrid_runner.models import Claim
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.wake import Reason, Wake

log = logging.getLogger("hybrid_runner.worker")


@dataclass(slots=True)
class Looks:
    """What one queue's looks came to; read by status snapshots."""

    looks: int = 0
    empty: int = 0
    found: dict[str, int] = field(default_factory=dict)
    consecutive_errors: int = 0


class Claimer:
    """The only one that claims from its queue in this worker."""

    def __init__(
        self,
        queue: str,
        *,
        wake: Wake,
        slots: Slots,
        claim: Callable[[str, int], Awaitable[list[Claim]]],
        release_lost: Callable[[str], Awaitable[set[int]]],
        next_due: Callable[[str], Awaitable[timedelta | None]],
        start: Callable[[list[Claim], Slots], None],
        room: Callable[[], int],
        looked: Callable[[Reason, int | None], None],
        set_timer: Callable[[timedelta | None], None],
    ) -> None:
        self.queue = queue
        self.seen = Looks()
        self._wake = wake
        self._slots = slots
        self._claim = claim
        self._release_lost = release_lost
        self._next_due = next_due
        self._start = start
        self._room = room
        self._looked = looked
        self._set_timer = set_timer
        self._stopped = False
        self.in_doubt = False
        """Whether a claim was sent whose answer has not arrived: what it took, if it did, would run nowhere."""
        self._more = False  # the last look was full: what a free slot means
        self._outage = Outage(f"claiming from {queue}")
        slots.freed = self._on_free_slot

    def stop(self) -> None:
        """Look no more; a look that is on its way is waited for, since what it claims must not be lost."""
        self._stopped = True
        self._wake.up(Reason.SLOT)

    async def run(self) -> None:
        """Look until stopped."""
        while True:
            reason = await self._wake.wait()
            if self._stopped:
                return
            try:
                await self._look_until_drained(reason)
            except Exception as error:
                self.seen.consecutive_errors += 1
                await self._outage.pause(error)
                self._wake.up(Reason.SWEEP)

    async def settle_doubt(self) -> None:
        """After a claim whose answer was lost: put back what it took. Not while a claim is on its way."""
        if self.in_doubt:
            for job_id in await self._release_lost(self.queue):
                log.warning("the answer to its claim was lost: queued again", extra={"job": job_id})
            self.in_doubt = False

    async def _look_until_drained(self, reason: Reason) -> None:
        await self.settle_doubt()
        if reason.sets_timer and not self._stopped:
            # Before the look: a job that becomes due between the two is then found by the look, not by neither.
            self._set_timer(await self._next_due(self.queue))
        found: int | None = None  # None: no slot was free, so nothing was looked at
        while not self._stopped and (free := min(self._slots.free(), self._room())):
            claims = await self._look(reason, free)
            found = (found or 0) + len(claims)
            if claims:
                self._start(claims, self._slots)
            self._more = len(claims) == free
            if not self._more:
                break
        else:
            self._more = True  # full: whatever woke us waits for a slot
        self._looked(reason, found)

    async def _look(self, reason: Reason, free: int) -> list[Claim]:
        self.in_doubt = True
        claims = await self._claim(self.queue, free)
        self.in_doubt = False
        self._outage.over()
        self.seen.consecutive_errors = 0
        self.seen.looks += 1
        self.seen.empty += not claims
        self.seen.found[reason.way] = self.seen.found.get(reason.way, 0) + len(claims)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: looked (%s), %d of %d slots claimed", self.queue, reason.way, len(claims), free)
            for claim in claims:
                log.debug(
                    "claimed by %s, claim %d, attempt %d of %d, %.1f ms after it was due",
                    reason.way, claim.claim, claim.attempt, claim.max_attempts, claim.pickup.total_seconds() * 1000,
                    extra={"job": claim.id, "queue": claim.queue, "kind": claim.kind},
                )  # fmt: skip
        return claims

    def _on_free_slot(self) -> None:
        if self._more:
            self._wake.up(Reason.SLOT)
