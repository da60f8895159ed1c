"""How much memory the payloads of running jobs take, and reading the large ones when there is room.

A claim brings small payloads along. A job with a larger one waits here until there is room, then
its payload is read: what a worker holds is bounded, whatever it has claimed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import LARGEST_JOB
from hybrid_runner.model.outcomes import Raised, Refused, Stopped
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.storage import worker_calls
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
_UNREAD = 2 * LARGEST_JOB
"""What is set aside for a payload that has not been read: its text, and the object made of it."""


class _Waiting(NamedTuple):
    claim: Claim
    bytes: int
    admitted: asyncio.Future[None]


class Payloads:
    """Admits jobs until the texts of their payloads, and the objects made of these, take about
    `most` bytes. One job alone is always admitted.
    """

    def __init__(self, connection: Fetches, most: int) -> None:
        self._connection = connection
        self._most = most
        self._held: dict[tuple[int, int], int] = {}
        self._waiting: deque[_Waiting] = deque()
        self._waiting_of = Counter[str]()
        self.held = 0
        """Bytes of large payloads that are held now, about."""

    @property
    def waiting(self) -> int:
        """How many jobs wait for room."""
        return len(self._waiting)

    def room(self, queue: str, otherwise: Callable[[], float]) -> float:
        """How many more jobs of the queue may be claimed: none while one of its jobs waits."""
        return 0 if self._waiting and self._waiting_of[queue] else otherwise()

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

    async def hold(self, claim: Claim) -> Raised | Refused | Stopped | None:
        """Wait for room, and read the payload if it did not come with its claim; an outcome when
        that cannot be done.
        """
        await self._admit(claim, _UNREAD if claim.payload is None else _weight(claim))
        if claim.payload is not None:
            return None
        ended = await self._read(claim)
        self._hold(claim, _weight(claim))
        self._admit_waiting()
        return ended

    def leave(self, claim: Claim) -> None:
        """The attempt has ended: forget what it carried."""
        if self._held.get((claim.id, claim.number)) is not None:
            self._hold(claim, 0)
            claim.payload, claim.data = "", None
            self._admit_waiting()

    async def _admit(self, claim: Claim, size: int) -> None:
        if not self._waiting and self._fits(size):
            self._hold(claim, size)
            return
        waiting = _Waiting(claim, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._waiting_of[claim.queue] += 1
        try:
            await waiting.admitted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._leave_line(waiting)
                self._admit_waiting()  # the one behind it may be smaller
            raise

    def _admit_waiting(self) -> None:
        while self._waiting and self._fits(self._waiting[0].bytes):
            first = self._waiting[0]
            self._leave_line(first)
            if not first.admitted.done():
                self._hold(first.claim, first.bytes)
                first.admitted.set_result(None)

    def _leave_line(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        self._waiting_of[waiting.claim.queue] -= 1

    def _fits(self, size: int) -> bool:
        return not self._held or self.held + size <= self._most

    def _hold(self, claim: Claim, size: int) -> None:
        key = claim.id, claim.number
        self.held += size - self._held.pop(key, 0)
        if size:
            self._held[key] = size

    async def _read(self, claim: Claim) -> Raised | Refused | Stopped | None:
        outage = Outage("reading a payload")
        while True:
            try:
                found = await worker_calls.read_payload(self._connection, claim)
            except RunnerError as error:
                if (fault := fault_of(error)) is not Fault.OUTAGE:
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
                await _quietly(worker_calls.forget_payload, self._connection, claim)
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
    """Bytes that payload and data take as texts, and the object that is made of the payload."""
    payload, data = claim.payload or "", claim.data or ""
    values = payload.count(",") + payload.count("[") + payload.count("{")
    return 2 * sys.getsizeof(payload) + sys.getsizeof(data) + _VALUE * values
