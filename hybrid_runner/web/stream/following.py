"""What `Runner.events` gives: one job, followed by the program that asks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from hybrid_runner.errors import ConfigurationError, JobNotFound, RunnerError
from hybrid_runner.model.job_events import JobEvent
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.stream import reader
from hybrid_runner.web.stream.job_stream import STOPPING, JobStream
from hybrid_runner.web.stream.reader import Reader, Subscription


class Follower(Reader):
    """Emptied by the program. What it is too slow for is left out, but for the last event of each
    job.
    """

    def __init__(self, job_id: int, *, follow_ups: bool) -> None:
        super().__init__(Subscription(job_id, follow_ups=follow_ups))
        self._waiting: deque[JobEvent] = deque()
        self._some = asyncio.Event()
        self._last: dict[int, JobEvent] = {}
        self._missing: int | None = None

    def put(self, change: JobEvent) -> None:
        before = self._last.get(change.job.id)
        if before is not None and before.job == change.job:  # told before the database was away
            return
        self._last[change.job.id] = change
        if len(self._waiting) >= reader.BUFFER:
            self._waiting = deque(self._newest())
        self._waiting.append(change)
        self._some.set()

    def gone(self, job_id: int) -> None:
        if job_id == self.subscription.job_id:
            self._missing = job_id
        super().gone(job_id)

    def end(self, reason: str | None) -> None:
        super().end(reason)
        self._some.set()

    async def next(self) -> JobEvent | None:
        """The next event; None: that was all. An error if the job is gone before its end, or
        nobody can go on telling.
        """
        while not self._waiting:
            if self.ended:
                self._raise_reason()
                return None
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def _newest(self) -> list[JobEvent]:
        """Of those that wait, the last of each job, in their order."""
        newest = {change.job.id: change for change in self._waiting}
        return [change for change in self._waiting if newest[change.job.id] is change]

    def _raise_reason(self) -> None:
        if self._missing is not None:
            raise JobNotFound(
                f"there is no job {self._missing}: it was never committed, or is pruned already"
            )
        if self.reason == STOPPING:
            raise ConfigurationError("the runner was closed while events of a job were read")
        if self.reason is not None:
            raise RunnerError(f"job {self.subscription.job_id}: {self.reason}")


class Following:
    """All that one runner follows; its connections are open while it follows something, and a few
    seconds longer.
    """

    def __init__(self, database: Callable[[], PageDatabase]) -> None:
        self._database = database
        self._stream: JobStream | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def events(self, job_id: int, *, follow_ups: bool) -> AsyncGenerator[JobEvent, None]:
        """Where the job stands, then each change until it has ended."""
        stream, follower = self._here(), Follower(job_id, follow_ups=follow_ups)
        stream.join(follower)
        try:
            while (change := await follower.next()) is not None:
                yield change
        finally:
            stream.leave(follower)

    async def close(self) -> None:
        """Follow nothing any more; whoever still does is told by an error."""
        stream, self._stream = self._stream, None
        if stream is not None and self._loop is asyncio.get_running_loop():
            await stream.close()

    def _here(self) -> JobStream:
        """The stream of the running loop; one that belongs to another has ended with it."""
        loop = asyncio.get_running_loop()
        if self._stream is None or self._loop is not loop:
            self._loop, self._stream = loop, JobStream(self._database())
        return self._stream
