"""Waits for jobs to end: one task asks Postgres for all awaited jobs at once."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import (
    ConfigurationError,
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    JobNotFound,
    RunnerError,
    WaitTimeout,
)
from hybrid_runner.model.jobs import JobStatus
from hybrid_runner.policy.intervals import OUTAGE
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner")

OnStatus = Callable[[JobStatus], None]
Look = Callable[[Sequence[int]], Awaitable[Sequence[JobStatus]]]

_FIRST_LOOK, _LAST_LOOK = 0.005, 0.5
_CLOSING = 3.0
_ONE_BY_ONE = 10
"""So many jobs are looked at alone until all are believed to be refused."""


class _Waiter(NamedTuple):
    future: asyncio.Future[JobStatus]
    on_status: OnStatus | None


class Watcher:
    """The waits of one event loop. `look` reads the status of jobs."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._waiters: dict[int, list[_Waiter]] = {}
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._outage: DatabaseUnavailable | None = None

    @property
    def idle(self) -> bool:
        """Whether no wait is open."""
        return not self._waiters

    async def ended(
        self, job_id: int, timeout: Duration | None, on_status: OnStatus | None
    ) -> JobStatus:
        """The status of the job once it has ended; an outage of Postgres does not end the wait."""
        limit = None if timeout is None else parse_duration(timeout).total_seconds()
        waiter = _Waiter(asyncio.get_running_loop().create_future(), on_status)
        self._waiters.setdefault(job_id, []).append(waiter)
        self._joined.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="hybrid-runner watcher")
            self._task.add_done_callback(self._on_end)
        scope = asyncio.timeout(limit)
        try:
            async with scope:
                return await waiter.future
        except TimeoutError:
            if not scope.expired():
                raise
            raise WaitTimeout(self._too_late(job_id, limit or 0)) from None
        finally:
            self._remove(job_id, waiter)

    async def close(self) -> None:
        """Stop looking; waits that are open end with an error."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            # Bounded: a statement that is broken off waits for Postgres to say so.
            await asyncio.wait([task], timeout=_CLOSING)
        self._fail_all(ConfigurationError("the runner was closed while this job was awaited"))

    async def _watch(self) -> None:
        pause, failures, seen = _FIRST_LOOK, 0, dict[int, JobStatus]()
        known: set[int] = set()
        while self._waiters:
            self._joined.clear()
            if not known.issuperset(self._waiters):
                pause, known = _FIRST_LOOK, set(self._waiters)  # a new wait: look quickly again
            known &= self._waiters.keys()
            seen = {job_id: status for job_id, status in seen.items() if job_id in self._waiters}
            asked = list(self._waiters)
            try:
                found = {status.id: status for status in await self._look(asked)}
            except DatabaseUnavailable as error:
                failures += 1
                if failures > 1 or not isinstance(error, ConnectionLost):
                    await self._outlast(error, failures)
                continue
            except DatabaseError as error:
                if len(asked) == 1:
                    raise
                await self._end_refused(asked, error)
                continue
            failures, self._outage = 0, None
            for job_id in asked:
                self._notify(job_id, found.get(job_id), seen)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._joined.wait()
            pause = min(_LAST_LOOK, pause * 1.5)

    async def _end_refused(self, asked: Sequence[int], error: DatabaseError) -> None:
        """One job of these cannot be looked at: its waits end, those of others go on."""
        looked_at = 0
        for number, job_id in enumerate(asked):
            if number == _ONE_BY_ONE and not looked_at:  # it is not about one of them
                raise error
            with contextlib.suppress(DatabaseUnavailable):
                try:
                    await self._look([job_id])
                    looked_at += 1
                except DatabaseError as its_own:
                    self._fail(job_id, its_own)
                    await asyncio.sleep(0)  # those who waited for it take themselves out
        if not looked_at:
            raise error

    async def _outlast(self, error: DatabaseUnavailable, failures: int) -> None:
        if self._outage is None:
            log.warning(
                "%s; still waiting for %d jobs",
                error,
                len(self._waiters),
                extra=log_event("postgres.unavailable"),
            )
        self._outage = error
        await asyncio.sleep(OUTAGE.spread(failures, random.random()).total_seconds())

    def _on_end(self, task: asyncio.Task[None]) -> None:
        """End all waits when the task has ended, whatever ended it."""
        if task is not self._task:  # closed, or replaced by another task
            return
        if task.cancelled():
            self._fail_all(RunnerError("the task that looks for awaited jobs was cancelled"))
        elif error := task.exception():
            self._fail_all(error)

    def _notify(self, job_id: int, status: JobStatus | None, seen: dict[int, JobStatus]) -> None:
        for future, on_status in self._waiters.get(job_id, ()):
            if future.done():
                continue
            if status is None:
                future.set_exception(
                    JobNotFound(
                        f"there is no job {job_id}: it was never committed, or is pruned already"
                    )
                )
                continue
            if on_status is not None and seen.get(job_id) != status:
                try:
                    on_status(status)
                except Exception as error:  # the caller's function failed: end its wait alone
                    future.set_exception(error)
                    continue
            if status.state.final:
                future.set_result(status)
        if status is not None:
            seen[job_id] = status

    def _fail_all(self, error: BaseException) -> None:
        for job_id in self._waiters:
            self._fail(job_id, error)

    def _fail(self, job_id: int, error: BaseException) -> None:
        for future, _ in self._waiters.get(job_id, ()):
            if not future.done():
                future.set_exception(_copy_of(error))

    def _remove(self, job_id: int, waiter: _Waiter) -> None:
        if waiter.future.done() and not waiter.future.cancelled():
            waiter.future.exception()  # marks it as retrieved, also when the wait was cancelled
        left = [other for other in self._waiters.get(job_id, ()) if other is not waiter]
        if left:
            self._waiters[job_id] = left
        else:
            self._waiters.pop(job_id, None)

    def _too_late(self, job_id: int, limit: float) -> str:
        if self._outage is not None:
            return f"job {job_id} was not seen to end within {limit:g} s: {self._outage}"
        return f"job {job_id} has not ended after {limit:g} s; it goes on"


def _copy_of(error: BaseException) -> BaseException:
    """An exception of one's own: whoever raises it adds a traceback to it."""
    try:
        copied = copy.copy(error)
    except Exception:  # a class that cannot be made from its arguments
        copied = RunnerError(f"{type(error).__name__}: {error}")
    copied.__cause__ = error
    return copied
