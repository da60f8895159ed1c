"""One reader of a stream: what it wants, what waits for it, and why it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from hybrid_runner.model.jobs import JobSnapshot

BUFFER = 1000
"""Events that may wait for one reader; readers share their bytes, so each costs next to nothing."""
_MOST_COUNTED = 2**53 - 1
"""The largest number that browsers read exactly; how many changes there were is a stranger's word.
"""
_AT_A_TIME = 100
"""Events in one write: what has been handed over can no longer be dropped."""


def event(name: str, data: object, number: str | None = None) -> bytes:
    """One event as it is sent."""
    head = f"event: {name}\n" + (f"id: {number}\n" if number is not None else "")
    return head.encode() + b"data: " + orjson.dumps(data) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a reader wants to see: one job, or all of a queue and of a kind (None: of any)."""

    job_id: int | None = None
    queue: str | None = None
    kind: str | None = None

    def covers(self, queue: str, kind: str) -> bool:
        """Whether it wants all jobs of that queue and kind."""
        return self.job_id is None and self.queue in (None, queue) and self.kind in (None, kind)


class Reader:
    """Filled by the stream, emptied by the request that it belongs to."""

    def __init__(
        self, subscription: Subscription, seen: int | None, is_there: Callable[[], bool]
    ) -> None:
        self.subscription = subscription
        self.is_there = is_there
        self.ended = False
        self.reason: str | None = None
        """Why it ends; None: because the job has ended."""
        self.included = asyncio.Event()
        """Set by the first look that was made for it too, from when on it misses nothing; and by
        its end.
        """
        self._seen = seen
        self._waiting: deque[bytes] = deque()
        self._some = asyncio.Event()
        self.hurry: Callable[[], None] | None = None
        """Gives up a write that hangs; set by the request while it writes."""
        self._skipped: int | None = None

    def offer(self, standing: JobSnapshot, text: bytes) -> None:
        """An event about a job; the same version of one job is not sent twice, nor an older one,
        except that an end is an end.
        """
        if self.subscription.job_id is not None:
            final = standing.state.final
            if (
                self._seen is None
                or standing.version > self._seen
                or (final and standing.version != self._seen)
            ):
                self._seen = standing.version
                self.put(text)
            if final:
                self.end(None)
        else:
            self.put(text)

    def forget(self) -> None:
        """The database was away: what it says now counts, whatever was said before."""
        self._seen = None

    def skip(self, count: int) -> None:
        """So many changes at least are not shown; 0: nobody counted them."""
        self._skipped = min((self._skipped or 0) + count, _MOST_COUNTED)

    def tell_skipped(self) -> None:
        """Say how many."""
        if self._skipped is not None:
            self.put(event("skipped", {"at_least": self._skipped}))
            self._skipped = None

    def put(self, text: bytes) -> None:
        """Any event; a reader that does not take what waits for it is dropped."""
        if self.ended:
            return
        if len(self._waiting) >= BUFFER:
            self._waiting.clear()
            self.end(f"you read too slowly: {BUFFER} events waited for you; connect again")
            return
        self._waiting.append(text)
        self._some.set()

    def end(self, reason: str | None) -> None:
        """No more; a write that hangs is given up if there is a reason."""
        if not self.ended:
            self.ended, self.reason = True, reason
            self._some.set()
            self.included.set()  # it waits for nothing any more
            if reason is not None and self.hurry is not None:
                self.hurry()

    async def next(self, patience: float) -> bytes | None:
        """What is to be written now: events, a sign of life after so many seconds without any, or
        None: that was all.
        """
        if not self._waiting and not self.ended:
            self._some.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._some.wait()
            except TimeoutError:
                return b": keep-alive\n\n"
        if not self._waiting:
            return None
        return b"".join(self._waiting.popleft() for _ in range(min(_AT_A_TIME, len(self._waiting))))
