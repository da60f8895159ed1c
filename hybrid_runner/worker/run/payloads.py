"""How much memory the payloads of running jobs take, and reading the large ones when there is room.

A claim brings small payloads along. A job with a larger one waits here until there is room, then
its payload is read: what a worker holds is bounded, whatever it has claimed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import LARGEST_JOB
from hybrid_runner.model.outcomes import Outcome, Raised, Refused, Stopped
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.loops import Outage

_SMALL = 4096
"""Characters up to which a payload is not counted."""
MOST_WITH_CLAIM = 64 * 1024
"""Bytes up to which a payload comes with its claim."""
_LOOK = 32 * 1024 * 1024
"""Bytes of all payloads that may come with one claim."""
_VALUE = 64
"""Bytes that an object takes in memory for each value of its JSON, about."""
_UNREAD = 4 * LARGEST_JOB
"""What is set aside for a payload that has not been read."""


class Payloads:
    """Admits jobs until the texts of their payloads, and the objects made of these, take about
    `most` bytes. One job alone is always admitted.
    """

    def __init__(self, connection: Fetches, most: int) -> None:
        self._connection = connection
        self._most = most
        self._held: dict[tuple[int, int], int] = {}
        self._line = asyncio.Lock()
        self._is_short = False
        self._in_line = Counter[str]()
        self._left = asyncio.Event()
        self._on_room = list[Callable[[], None]]()
        self.held = 0
        """Bytes of large payloads that are held now, about."""

    def watch(self, on_room: Callable[[], None]) -> None:
        """Call this when there is room again, and jobs may be claimed that may not have been."""
        self._on_room.append(on_room)

    def room(self, queue: str, otherwise: Callable[[], float]) -> float:
        """How many more jobs of the queue may be claimed: none while one of its jobs waits."""
        return 0 if self._is_short and self._in_line[queue] else otherwise()

    @staticmethod
    def most_bytes(slots: int) -> int:
        """Up to how many bytes a job brings its payload along, when so many are asked for."""
        return min(MOST_WITH_CLAIM, _LOOK // max(1, slots))

    @staticmethod
    def is_small(claim: Claim) -> bool:
        """Whether its payload is there, and needs no room."""
        payload, data = claim.payload, claim.data
        return (
            payload is not None and len(payload) <= _SMALL and (data is None or len(data) <= _SMALL)
        )

    async def hold(
        self, claim: Claim, read: Callable[[Claim], Awaitable[Outcome | None]] | None = None
    ) -> Outcome | None:
        """Wait for room, and `read` the payload if it did not come with its claim; an outcome when
        that cannot be done.
        """
        self._in_line[claim.queue] += 1
        try:
            async with self._line:  # one at a time: what it takes is known once it was read
                if claim.payload is None:
                    await self._take(claim, _UNREAD)
                    if (ended := await (read or self._read)(claim)) is not None:
                        return ended
                await self._take(claim, _weight(claim))
        finally:
            self._in_line[claim.queue] -= 1
        return None

    def leave(self, claim: Claim) -> None:
        """The attempt has ended: forget what it carried."""
        if (claim.id, claim.number) in self._held:
            self._hold(claim, 0)
            claim.payload, claim.data = "", None
            self._left.set()

    async def _take(self, claim: Claim, size: int) -> None:
        try:
            while not self._fits(claim, size):
                self._is_short = True
                self._left.clear()
                await self._left.wait()
        finally:  # cancelled, too: jobs of other queues waited behind it
            was_short, self._is_short = self._is_short, False
            for on_room in self._on_room if was_short else ():
                on_room()
        self._hold(claim, size)

    def _fits(self, claim: Claim, size: int) -> bool:
        own = self._held.get((claim.id, claim.number), 0)
        others = self.held - own
        return others <= 0 or others + size <= self._most

    def _hold(self, claim: Claim, size: int) -> None:
        key = claim.id, claim.number
        self.held += size - self._held.pop(key, 0)
        if size:
            self._held[key] = size

    async def _read(self, claim: Claim) -> Raised | Refused | Stopped | None:
        outage = Outage("reading a payload")
        while True:
            try:
                found = await claim_calls.read_payload(self._connection, claim)
            except RunnerError as error:
                if (fault := fault_of(error)) not in (Fault.OUTAGE, Fault.STATEMENT):
                    return await self._unreadable(claim, error, fault)
                await outage.pause(error)
                continue
            outage.over()
            if found is None:
                return Stopped.ROW_GONE
            claim.payload, claim.data = found
            return None

    async def _unreadable(self, claim: Claim, error: RunnerError, fault: Fault) -> Raised | Refused:
        reason = f"what the job carries cannot be read: {error}"
        match fault:
            case Fault.UNREADABLE_ROW:
                await _quietly(claim_calls.forget_payload, self._connection, claim)
            case Fault.UNFIT_ROW:
                pass
            case _:
                return Raised("PayloadUnreadable", reason)  # the next attempt may read it
        return Refused("PayloadUnreadable", reason)


async def _quietly(
    call: Callable[[Fetches, Claim], Awaitable[None]], on: Fetches, claim: Claim
) -> None:
    """Then the job ends with it, or its outcome is refused."""
    try:
        await call(on, claim)
    except RunnerError:
        return


def _weight(claim: Claim) -> int:
    """Bytes that payload and data take as texts, and the objects that are made of them."""
    payload, data = claim.payload or "", claim.data or ""
    values = sum(text.count(sign) for text in (payload, data) for sign in ",[{")
    return 2 * sys.getsizeof(payload) + sys.getsizeof(data) + _VALUE * values
