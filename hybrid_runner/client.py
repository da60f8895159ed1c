"""What applications do with jobs: put them in, wait for them, look at them, stop them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import (
    ConfigurationError,
    EnqueueError,
    JobCancelled,
    JobFailed,
    JobNotFound,
    WaitTimeout,
)
from hybrid_runner.jsontext import NotStorable, decode, encode
from hybrid_runner.models import Enqueued, JobStatus, JobView, NewJob, OnConflict, State
from hybrid_runner.registry import NAME, JobKind, Registry, check_queue
from hybrid_runner.storage import client_statements
from hybrid_runner.storage.connections import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.publishing import publishing

log = logging.getLogger("hybrid_runner")

P = TypeVar("P")
R = TypeVar("R")

MOST_AT_ONCE = 100_000
"""Jobs of one `enqueue_many`."""

MOST_BYTES_AT_ONCE = 1_000_000_000
"""Bytes of their payloads and data: Postgres hangs up on a message of a gibibyte, which would look like an outage."""

_FIRST_LOOK, _LAST_LOOK = 0.005, 0.5
_CLOSING = 3.0


class JobHandle(Generic[R]):
    """A job that was enqueued."""

    def __init__(self, client: Client, enqueued: Enqueued, kind: JobKind[Any, R] | None) -> None:
        self.id = enqueued.id
        self.outcome = enqueued.outcome
        """`inserted`; or what became of the key: `exists` (nothing was stored) or `replaced`."""
        self._client = client
        self._kind = kind

    def __repr__(self) -> str:
        return f"JobHandle(id={self.id}, outcome={self.outcome!r})"

    async def wait(self, timeout: Duration | None = None, *, on_status: Callable[[JobStatus], None] | None = None) -> R:
        """The job's result once it has ended; JobFailed, JobCancelled or WaitTimeout otherwise."""
        status = await self._client.wait_ended(self.id, timeout, on_status)
        if status.state is State.FAILED:
            raise JobFailed(f"job {self.id} ({status.kind}) failed: {status.last_error}")
        if status.state is State.CANCELLED:
            raise JobCancelled(f"job {self.id} ({status.kind}) was cancelled: {status.last_error}")
        kind = self._kind or self._client.registry.get(status.kind)
        if kind is None:
            result: R = decode(status.result)
        else:
            result = kind.decode_result(status.result)
        return result

    async def get(self) -> JobView:
        """The job as it stands."""
        job = await self._client.get(self.id)
        if job is None:
            raise JobNotFound(f"there is no job {self.id}")
        return job

    async def cancel(self, reason: str | None = None) -> str:
        """cancelled, requested (it runs and was told), finished or unknown."""
        return await self._client.cancel(self.id, reason)


class Client:
    """The calls of applications, on any connection that can fetch."""

    def __init__(self, on: Callable[[], Any], registry: Registry) -> None:
        self._on = on
        self.registry = registry
        self._waiting: dict[int, list[tuple[asyncio.Future[JobStatus], Callable[[JobStatus], None] | None]]] = {}
        self._watcher: asyncio.Task[None] | None = None
        self._joined = asyncio.Event()

    async def enqueue(
        self, kind: JobKind[P, R] | str, payload: Any, on_conflict: OnConflict, connection: Fetches | None, **options: Any
    ) -> JobHandle[R]:
        """Store one job, in the caller's transaction when a connection is given."""
        job = self.new_job(kind, payload, **options)
        _check_on_conflict(on_conflict)
        on = connection if connection is not None else await self._on()
        with publishing(job.queue, job.kind) as publish:
            if publish.traceparent is not None:
                job = replace(job, traceparent=publish.traceparent)
            enqueued = await client_statements.enqueue_job(on, job, on_conflict)
            publish.became([enqueued.id], enqueued.outcome)
        log.debug("enqueued %s in %s: %s", job.kind, job.queue, enqueued.outcome, extra=log_event("job.enqueued", job=enqueued.id))
        return JobHandle(self, enqueued, None if isinstance(kind, str) else kind)

    async def enqueue_many(
        self,
        kind: JobKind[P, R] | str,
        payloads: Iterable[Any],
        on_conflict: OnConflict,
        connection: Fetches | None,
        **options: Any,
    ) -> list[Enqueued]:
        """Store many jobs in one statement: all or none."""
        _check_on_conflict(on_conflict)
        given = list(payloads)
        if len(given) > MOST_AT_ONCE:
            raise EnqueueError(f"{len(given):,} jobs at once are too many: send at most {MOST_AT_ONCE:,} a call")
        if not given:
            return []
        bare = [payload for payload in given if not isinstance(payload, NewJob)]
        if len(bare) == len(given):
            pattern, texts = self._alike(kind, bare, options)
            _check_size(texts)
            on = connection if connection is not None else await self._on()
            with publishing(pattern.queue, pattern.kind, len(texts)) as publish:
                enqueued = await client_statements.enqueue_alike(on, replace(pattern, traceparent=publish.traceparent), texts)
                publish.became([job.id for job in enqueued])
                return enqueued
        jobs = self._in_their_places(kind, given, bare, options) if bare else given
        _check_size([text for job in jobs for text in (job.payload, job.data) if isinstance(text, str)])
        on = connection if connection is not None else await self._on()
        with publishing(jobs[0].queue, jobs[0].kind, len(jobs)) as publish:
            jobs = [job if job.traceparent else replace(job, traceparent=publish.traceparent) for job in jobs]
            enqueued = await client_statements.enqueue_many(on, jobs, on_conflict)
            publish.became([job.id for job in enqueued])
            return enqueued

    def _alike(self, kind: JobKind[Any, Any] | str, payloads: Sequence[Any], options: dict[str, Any]) -> tuple[NewJob, list[str]]:
        pattern = self.new_job(kind, payloads[0], **options)  # what all of them share is checked once
        return pattern, [pattern.payload, *_payload_texts(*self._known(kind), payloads[1:])]

    def _in_their_places(
        self, kind: JobKind[Any, Any] | str, given: Sequence[Any], bare: Sequence[Any], options: dict[str, Any]
    ) -> list[NewJob]:
        pattern, texts = self._alike(kind, bare, options)
        text = iter(texts)
        return [job if isinstance(job, NewJob) else replace(pattern, payload=next(text)) for job in given]

    def new_job(
        self,
        kind: JobKind[Any, Any] | str,
        payload: Any,
        *,
        queue: str | None = None,
        key: str | None = None,
        priority: int = 5,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        max_attempts: int | None = None,
        timeout: Duration | None = None,
        finish_by: datetime | None = None,
        data: Any = None,
    ) -> NewJob:
        """Check everything that can be checked before Postgres is asked."""
        known, name = self._known(kind)
        queue = queue or (known.queue if known else "default")
        check_queue(queue)
        limit = None if timeout is None else parse_duration(timeout)
        _check_options(key=key, priority=priority, max_attempts=max_attempts, limit=limit)
        for what, moment in (("run_at", run_at), ("finish_by", finish_by)):
            _check_moment(what, moment)
        if run_at is not None and delay is not None:
            raise ConfigurationError("give run_at or delay, not both")
        [text] = _payload_texts(known, name, [payload])
        try:
            memory = None if data is None else encode(data, "the data")
        except NotStorable as error:
            raise ConfigurationError(f"{name}: {error}") from None
        return NewJob(
            kind=name, payload=text, queue=queue, key=key, priority=priority, run_at=run_at,
            delay=None if delay is None else parse_duration(delay), max_attempts=max_attempts, timeout=limit,
            finish_by=finish_by, data=memory,
        )  # fmt: skip

    def _known(self, kind: object) -> tuple[JobKind[Any, Any] | None, str]:
        if isinstance(kind, JobKind):
            return kind, kind.name
        if not isinstance(kind, str):
            raise ConfigurationError(f"enqueue takes a kind's name or a handler of @app.job(…), not {type(kind).__name__}")
        if not NAME.fullmatch(kind):
            raise ConfigurationError(f"{kind[:60]!r} is not a kind: use 1 to 128 letters, digits and . _ : / -")
        return self.registry.get(kind), kind

    async def get(self, job_id: int) -> JobView | None:
        """One job, live or archived."""
        return await client_statements.get_job(await self._on(), job_id)

    async def list_jobs(self, state: State | None, queue: str | None, kind: str | None, most: int) -> Sequence[JobView]:
        """The newest jobs that match."""
        return await client_statements.list_jobs(await self._on(), state, queue, kind, most)

    async def cancel(self, job_id: int, reason: str | None) -> str:
        """End a queued job, ask a running one to stop."""
        return await client_statements.cancel_job(await self._on(), job_id, reason)

    async def retry(self, job_id: int) -> str:
        """Run a finished job again, a waiting one now."""
        return await client_statements.retry_job(await self._on(), job_id)

    async def amend(self, job_id: int, version: int, payload: Any, priority: int | None, run_at: datetime | None, data: Any) -> str:
        """Change a queued job if it is still at this version."""
        try:
            texts = [None if v is None else encode(v, what) for v, what in ((payload, "the payload"), (data, "the data"))]
        except NotStorable as error:
            raise ConfigurationError(f"job {job_id}: {error}") from None
        return await client_statements.amend_job(await self._on(), job_id, version, texts[0], priority, run_at, texts[1])

    async def pause(self, queue: str) -> bool:
        """Stop claims from a queue."""
        check_queue(queue)
        return await client_statements.pause_queue(await self._on(), queue)

    async def resume(self, queue: str) -> bool:
        """Allow claims again."""
        return await client_statements.resume_queue(await self._on(), queue)

    # --- waiting: one watcher asks for all awaited jobs at once

    async def wait_ended(self, job_id: int, timeout: Duration | None, on_status: Callable[[JobStatus], None] | None) -> JobStatus:
        """The status of the job once it has ended."""
        future: asyncio.Future[JobStatus] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append((future, on_status))
        self._joined.set()
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(), name="hybrid-runner watcher")
        limit = None if timeout is None else parse_duration(timeout).total_seconds()
        scope = asyncio.timeout(limit)
        try:
            async with scope:
                return await future
        except TimeoutError:
            if not scope.expired():
                raise
            raise WaitTimeout(f"job {job_id} has not ended after {limit:g} s; it goes on") from None
        finally:
            self._forget(job_id, future)

    async def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.cancel()
            # Bounded: a statement that is broken off waits for Postgres to say so.
            await asyncio.wait([self._watcher], timeout=_CLOSING)
        self._tell_all(ConfigurationError("the runner was closed while this job was awaited"))

    async def _watch(self) -> None:
        pause, seen = _FIRST_LOOK, dict[int, JobStatus]()
        known: set[int] = set()
        while self._waiting:
            self._joined.clear()
            if not known.issuperset(self._waiting):
                pause, known = _FIRST_LOOK, set(self._waiting)  # somebody new: look quickly again
            known &= self._waiting.keys()
            seen = {job_id: status for job_id, status in seen.items() if job_id in self._waiting}
            asked = list(self._waiting)
            try:
                found = {status.id: status for status in await client_statements.watch_jobs(await self._on(), asked)}
            except Exception as error:
                self._tell_all(error)
                return
            for job_id in asked:
                self._tell(job_id, found.get(job_id), seen)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._joined.wait()
            pause = min(_LAST_LOOK, pause * 1.5)

    def _tell(self, job_id: int, status: JobStatus | None, seen: dict[int, JobStatus]) -> None:
        for future, on_status in self._waiting.get(job_id, ()):
            if future.done():
                continue
            if status is None:
                future.set_exception(JobNotFound(f"there is no job {job_id}: it was never committed, or is pruned already"))
                continue
            if on_status is not None and seen.get(job_id) != status:
                try:
                    on_status(status)
                except Exception as error:  # the caller's own: it ends this wait and no other
                    future.set_exception(error)
                    continue
            if status.state.final:
                future.set_result(status)
        if status is not None:
            seen[job_id] = status

    def _tell_all(self, error: Exception) -> None:
        for waiters in self._waiting.values():
            for future, _ in waiters:
                if not future.done():
                    future.set_exception(error)

    def _forget(self, job_id: int, future: asyncio.Future[JobStatus]) -> None:
        left = [waiter for waiter in self._waiting.get(job_id, ()) if waiter[0] is not future]
        if left:
            self._waiting[job_id] = left
        else:
            self._waiting.pop(job_id, None)


def _payload_texts(known: JobKind[Any, Any] | None, name: str, payloads: Iterable[Any]) -> list[str]:
    given = ({} if payload is None else payload for payload in payloads)
    try:
        return known.encode_all(given) if known else [encode(payload, "the payload") for payload in given]
    except NotStorable as error:
        raise ConfigurationError(f"{name}: {error}") from None


def _check_size(texts: Sequence[str]) -> None:
    size = sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts)
    if size > MOST_BYTES_AT_ONCE:
        raise EnqueueError(f"{size:,} bytes of payloads at once are too many: send at most {MOST_BYTES_AT_ONCE:,} a call")


def _check_on_conflict(on_conflict: str) -> None:
    if on_conflict not in ("exists", "replace", "error"):
        raise ConfigurationError(f"on_conflict must be 'exists', 'replace' or 'error', not {on_conflict!r}")


def _check_options(*, key: object, priority: object, max_attempts: object, limit: timedelta | None) -> None:
    if key is not None and not (isinstance(key, str) and 1 <= len(key.encode()) <= 512):
        raise ConfigurationError("key must be a text of 1 to 512 bytes")
    if not isinstance(priority, int) or not 0 <= priority <= 9:
        raise ConfigurationError(f"priority must be 0 (first) to 9, not {priority!r}")
    if max_attempts is not None and not (isinstance(max_attempts, int) and 1 <= max_attempts <= 1000):
        raise ConfigurationError(f"max_attempts must be 1 to 1000, not {max_attempts!r}")
    if limit is not None and limit <= timedelta(0):
        raise ConfigurationError("timeout must be more than zero")


def _check_moment(what: str, moment: object) -> None:
    if moment is not None and not (isinstance(moment, datetime) and moment.tzinfo is not None):
        raise ConfigurationError(f"{what} must be a datetime with a time zone: use datetime.now(UTC) or .astimezone()")
