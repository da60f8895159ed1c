"""Whom the stream tells of changes: which jobs are watched for one reader, and what it was told.

Reader          decides what is new to it
EventReader     a request: the bytes that wait for it, and why it ends
Follower        `Runner.events`, in following.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from hybrid_runner.model.job_events import JobEvent

BUFFER = 1000
"""Events that may wait for one reader; readers share the bytes, so a waiting event costs little."""
MOST_FOLLOWED = 200
"""Jobs that one reader follows in all, from one job to those that its end has stored."""
_MOST_COUNTED = 2**53 - 1
"""The largest number that browsers read exactly; messages from others may hold any number."""
_AT_A_TIME = 100
"""Events in one write; once written they can no longer be dropped."""


def event(name: str, data: object) -> bytes:
    """One server-sent event that is about the stream, as bytes."""
    return f"event: {name}\n".encode() + b"data: " + orjson.dumps(data) + b"\n\n"


_AWAY = event("away", {"reason": "the database does not answer; this stream goes on once it does"})
_BACK = event("back", {})


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a reader wants to see: one job, or all jobs of a queue and of a kind (None: of any)."""

    job_id: int | None = None
    queue: str | None = None
    kind: str | None = None
    follow_ups: bool = False
    """Whether it goes on with the jobs that the end of this job has stored, and so on."""

    def covers(self, queue: str, kind: str) -> bool:
        """Whether all jobs of this queue and kind are wanted."""
        return self.job_id is None and self.queue in (None, queue) and self.kind in (None, kind)


class Reader:
    """Filled by the stream, until it ends; what becomes of an event is its subclass's matter."""

    def __init__(
        self,
        subscription: Subscription,
        seen: int | None = None,
        is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self.subscription = subscription
        self.is_there = is_there
        self.ended = False
        self.reason: str | None = None
        """Why it ends; None: because the job has ended, and what it follows."""
        self.included = asyncio.Event()
        """Set when the first round of reads after joining is done: from then on no change is
        missed. Also set when the reader ends.
        """
        one = subscription.job_id
        self.jobs: set[int] = set() if one is None else {one}
        """The jobs that are watched for it; read by the stream."""
        self.ends = 0
        """How many of its jobs have ended."""
        self._followed = self.jobs.copy()
        self._versions: dict[int, int] = {} if one is None or seen is None else {one: seen}
        """The last version that it was told of each of its jobs."""

    def knows(self, job_id: int) -> bool:
        """Whether it was told of this job before."""
        return job_id in self._versions

    def offer(self, change: JobEvent) -> list[int]:
        """Add an event. Of a job of its own a reader is not told the same version twice, nor an
        older one, unless it is the job's end. Returns the jobs that are watched for it from now on.
        """
        if self.ended:
            return []
        job = change.job
        if self.subscription.job_id is None:
            self.put(change)
            return []
        seen, final = self._versions.get(job.id), job.state.final
        counted = final and job.id in self.jobs
        self.ends += counted
        if seen is None or job.version > seen or (final and job.version != seen):
            self._versions[job.id] = job.version
            self.put(change)
        return self._follow(job.id, job.followed_by or ()) if counted else []

    def gone(self, job_id: int) -> None:
        """One of its jobs was deleted."""
        self._follow(job_id, ())

    def forget(self) -> None:
        """Forget the versions that were told: the database was away, what it says now counts."""
        self._versions.clear()

    def end(self, reason: str | None) -> None:
        """Add no more events."""
        if not self.ended:
            self.ended, self.reason = True, reason
            self.included.set()  # nobody has to wait for it any more

    def put(self, change: JobEvent) -> None:
        """Add an event that is new to it."""
        raise NotImplementedError

    def skip(self, count: int) -> None:
        """Count changes that are not shown, at least so many; 0: nobody counted them."""

    def put_skipped(self) -> None:
        """Tell about the changes that were not shown, if there were any."""

    def away(self) -> None:
        """Tell that the database does not answer."""

    def back(self) -> None:
        """Tell that it does again."""

    def _follow(self, ended: int, stored: Iterable[int]) -> list[int]:
        self.jobs.discard(ended)
        fresh = [each for each in stored if each not in self._followed]
        if not self.subscription.follow_ups:
            fresh = []
        if len(self._followed) + len(fresh) > MOST_FOLLOWED:
            self.end(
                f"{MOST_FOLLOWED} jobs were followed, as many as may be: go on from the last one"
            )
            return []
        self.jobs.update(fresh)
        self._followed.update(fresh)
        if not self.jobs:
            self.end(None)
        return fresh


class EventReader(Reader):
    """Emptied by the request that it belongs to."""

    def __init__(
        self, subscription: Subscription, seen: int | None, is_there: Callable[[], bool]
    ) -> None:
        # An id that was sent while jobs were followed counts their ends, and is no version.
        super().__init__(subscription, None if subscription.follow_ups else seen, is_there)
        self._waiting: deque[bytes] = deque()
        self._some = asyncio.Event()
        self.abort_write: Callable[[], None] | None = None
        """Aborts a write that hangs; set by the request while it writes."""
        self._skipped: int | None = None

    def put(self, change: JobEvent) -> None:
        self._put(change.as_sse(self.ends if self.subscription.follow_ups else None))

    def gone(self, job_id: int) -> None:
        self._put(event("gone", {"id": job_id}))
        super().gone(job_id)

    def skip(self, count: int) -> None:
        self._skipped = min((self._skipped or 0) + count, _MOST_COUNTED)

    def put_skipped(self) -> None:
        if self._skipped is not None:
            self._put(event("skipped", {"at_least": self._skipped}))
            self._skipped = None

    def away(self) -> None:
        self._put(_AWAY)

    def back(self) -> None:
        self._put(_BACK)

    def end(self, reason: str | None) -> None:
        """Add no more events; with a reason, a write that hangs is aborted."""
        if not self.ended:
            super().end(reason)
            self._some.set()
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

    def _put(self, text: bytes) -> None:
        """A reader that leaves too many waiting is ended."""
        if self.ended:
            return
        if len(self._waiting) >= BUFFER:
            self._waiting.clear()
            self.end(f"you read too slowly: {BUFFER} events waited for you; connect again")
            return
        self._waiting.append(text)
        self._some.set()
