"""One reader of the stream: its subscription, the events that wait for it, and why it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from hybrid_runner.model.jobs import JobSnapshot

BUFFER = 1000
"""Events that may wait for one reader; readers share the bytes, so a waiting event costs little."""
_MOST_COUNTED = 2**53 - 1
"""The largest number that browsers read exactly; messages from others may hold any number."""
_AT_A_TIME = 100
"""Events in one write; once written they can no longer be dropped."""


def event(name: str, data: object, number: str | None = None) -> bytes:
    """One server-sent event as bytes."""
    head = f"event: {name}\n" + (f"id: {number}\n" if number is not None else "")
    return head.encode() + b"data: " + orjson.dumps(data) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a reader wants to see: one job, or all jobs of a queue and of a kind (None: of any)."""

    job_id: int | None = None
    queue: str | None = None
    kind: str | None = None

    def covers(self, queue: str, kind: str) -> bool:
        """Whether all jobs of this queue and kind are wanted."""
        return self.job_id is None and self.queue in (None, queue) and self.kind in (None, kind)


class Reader:
    """Filled by the stream, emptied by the request that it belongs to."""

    def __init__(
        self,
        subscription: Subscription,
        seen: int | None,
        is_there: Callable[[], bool],
        *,
        granted: bool = False,
    ) -> None:
        self.subscription = subscription
        self.is_there = is_there
        self.granted = granted
        """Whether it brought the token."""
        self.ended = False
        self.reason: str | None = None
        """Why it ends, for the client; None: because the job has ended."""
        self.included = asyncio.Event()
        """Set when the first round of reads after joining is done: from then on no change is
        missed. Also set when the reader ends.
        """
        self._seen = seen
        self._waiting: deque[bytes] = deque()
        self._some = asyncio.Event()
        self.abort_write: Callable[[], None] | None = None
        """Aborts a write that hangs; set by the request while it writes."""
        self._skipped: int | None = None

    def offer(self, snapshot: JobSnapshot, text: bytes) -> None:
        """Add an event about a job. A reader of one job is not sent the same version twice, nor an
        older one, unless it is the job's end.
        """
        if self.subscription.job_id is not None:
            final = snapshot.state.final
            if (
                self._seen is None
                or snapshot.version > self._seen
                or (final and snapshot.version != self._seen)
            ):
                self._seen = snapshot.version
                self.put(text)
            if final:
                self.end(None)
        else:
            self.put(text)

    def forget(self) -> None:
        """Forget the version that was sent last: the database was away, what it says now counts."""
        self._seen = None

    def skip(self, count: int) -> None:
        """Count changes that are not shown, at least so many; 0: nobody counted them."""
        self._skipped = min((self._skipped or 0) + count, _MOST_COUNTED)

    def put_skipped(self) -> None:
        """Add an event about the changes that were not shown, if there were any."""
        if self._skipped is not None:
            self.put(event("skipped", {"at_least": self._skipped}))
            self._skipped = None

    def put(self, text: bytes) -> None:
        """Add an event; a reader that leaves too many waiting is ended."""
        if self.ended:
            return
        if len(self._waiting) >= BUFFER:
            self._waiting.clear()
            self.end(f"you read too slowly: {BUFFER} events waited for you; connect again")
            return
        self._waiting.append(text)
        self._some.set()

    def end(self, reason: str | None) -> None:
        """Add no more events; with a reason, a write that hangs is aborted."""
        if not self.ended:
            self.ended, self.reason = True, reason
            self._some.set()
            self.included.set()  # nobody has to wait for it any more
            if reason is not None and self.abort_write is not None:
                self.abort_write()

    async def next(self, patience: float) -> bytes | None:
        """Bytes to write now: events, or a comment after `patience` seconds without any; None: that
        was all.
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
