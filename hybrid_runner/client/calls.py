"""The calls of applications: enqueue jobs, wait for them, read them, change them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from hybrid_runner.client.handle import JobHandle
from hybrid_runner.client.kind_names import KindNames
from hybrid_runner.client.session import Sessions
from hybrid_runner.client.waiting import OnStatus
from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError, EnqueueError, ValueRefused
from hybrid_runner.handlers.key_use import take_key_use
from hybrid_runner.handlers.kind import JobKind, check_queue
from hybrid_runner.handlers.new_jobs import KeyOf, located, new_job, new_jobs
from hybrid_runner.handlers.options import given
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import (
    Enqueued,
    JobStatus,
    JobSummary,
    JobView,
    State,
    check_signal_key,
)
from hybrid_runner.model.kinds import KindView, UnknownKind
from hybrid_runner.model.signals import LARGEST_PAYLOAD
from hybrid_runner.storage import client_calls, kind_calls, signal_calls
from hybrid_runner.storage.alike import Alike
from hybrid_runner.storage.connections.pool import Pool
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.publish_span import has_tracer_provider, publish_span

log = logging.getLogger("hybrid_runner")

P = TypeVar("P")
R = TypeVar("R")


class Client:
    """Makes the calls on the connections of the running event loop."""

    def __init__(self, sessions: Sessions, registry: Registry) -> None:
        self._sessions = sessions
        self.registry = registry
        self._kind_names = KindNames()

    async def pool(self) -> Pool:
        """The connections of the running loop."""
        return await self._sessions.pool()

    async def enqueue(
        self, kind: JobKind[P, R] | str, payload: Any, options: Mapping[str, Any]
    ) -> JobHandle[R]:
        """Store one job, in the caller's transaction when a connection is given."""
        chosen = given(options)
        use, connection = take_key_use(chosen), _of_asyncpg(chosen.pop("connection", None))
        job = new_job(self.registry.get, kind, payload, chosen, use)
        on = connection if connection is not None else await self._sessions.pool()
        if job.queue is None and has_tracer_provider():  # the span is named after the queue
            job = await self._kind_names.place(on, job)
        with publish_span(job.queue or "", job.kind) as publish:
            if publish.traceparent is not None:
                job = replace(job, traceparent=publish.traceparent)
            enqueued = await client_calls.enqueue_job(on, job, *use)
            publish.set_result([enqueued])
        log.debug(
            "enqueued %s%s: %s",
            job.kind,
            f" in {job.queue}" if job.queue else "",
            enqueued.enqueued,
            extra=log_event("job.enqueued", job=enqueued.id),
        )
        if connection is None:
            await self.warn_of_typo(on, kind)
        return JobHandle(self, *enqueued, None if isinstance(kind, str) else kind)

    async def enqueue_many(
        self,
        kind: JobKind[P, R] | str,
        payloads: Iterable[Any],
        key: KeyOf | None,
        options: Mapping[str, Any],
    ) -> list[Enqueued]:
        """Store many jobs in one statement: all or none."""
        chosen = given(options)
        use, connection = take_key_use(chosen), _of_asyncpg(chosen.pop("connection", None))
        groups = new_jobs(self.registry, kind, payloads, key, chosen, use)
        if not groups:
            return []
        on = connection if connection is not None else await self._sessions.pool()
        groups = await self._kind_names.place_all(on, groups)
        first, count = groups[0].pattern, sum(len(group.payloads) for group in groups)
        with publish_span(first.queue or "default", first.kind, count) as publish:
            if publish.traceparent is not None:
                groups = [_traced(group, publish.traceparent) for group in groups]
            try:
                enqueued = await client_calls.enqueue_groups(on, groups, *use)
            except (EnqueueError, ValueRefused) as error:
                raise located(error, groups) from error
            publish.set_result(enqueued)
        if connection is None:
            await self.warn_of_typo(on, kind)
        return enqueued

    async def warn_of_typo(self, on: Fetches, kind: JobKind[Any, Any] | str) -> None:
        """Log a warning if no worker has declared this kind and another one looks like it."""
        # On a connection of the caller's it could spoil a transaction; Postgres warns there.
        if isinstance(kind, str) and self.registry.get(kind) is None:
            await self._kind_names.warn_of_typo(on, kind)

    async def get(self, job_id: int) -> JobView | None:
        """One job, live or archived."""
        return await client_calls.get_job(await self._sessions.pool(), job_id)

    async def list_jobs(
        self, state: State | None, queue: str | None, kind: str | None, most: int
    ) -> Sequence[JobSummary]:
        """The newest jobs that match."""
        on = await self._sessions.pool()
        return await client_calls.list_jobs(on, state, queue, kind, most)

    async def list_kinds(self) -> Sequence[KindView]:
        """The kinds that workers have declared."""
        return await kind_calls.list_kinds(await self._sessions.pool())

    async def unknown_kinds(self, due_for: timedelta) -> Sequence[UnknownKind]:
        """Due jobs that no live worker of their queue can run, by queue and kind."""
        return await kind_calls.unknown_kinds(await self._sessions.pool(), due_for)

    async def cancel(self, job_id: int, reason: str | None) -> CancelAnswer:
        """End a queued job, ask a running one to stop."""
        return await client_calls.cancel_job(await self._sessions.pool(), job_id, reason)

    async def retry(self, job_id: int) -> RetryAnswer:
        """Run a finished job again, a waiting one now."""
        return await client_calls.retry_job(await self._sessions.pool(), job_id)

    async def amend(
        self,
        job_id: int,
        version: int,
        payload: Any,
        priority: int | None,
        run_at: datetime | None,
        data: Any,
    ) -> AmendAnswer:
        """Change a queued job if it is still at this version."""
        on = await self._sessions.pool()
        try:
            text, memory = await self._amended(on, job_id, payload, data)
        except NotStorable as error:
            raise ConfigurationError(f"job {job_id}: {error}") from None
        return await client_calls.amend_job(on, job_id, version, text, priority, run_at, memory)

    async def _amended(
        self, on: Fetches, job_id: int, payload: Any, data: Any
    ) -> tuple[str | None, str | None]:
        """Payload and data as the job's handler takes them, where its code is at hand."""
        if payload is None and data is None:
            return None, None
        job = await client_calls.get_job(on, job_id)
        kind = None if job is None else self.registry.get(job.kind)
        write = encode if kind is None else kind.write_memory
        memory = None if data is None else write(data, "the data")
        if payload is None:
            return None, memory
        return encode(payload, "the payload") if kind is None else kind.encode(payload), memory

    async def signal(self, key: str, payload: Any, connection: Fetches | None) -> int:
        """Store a signal, in the caller's transaction when a connection is given; its number."""
        check_signal_key(key)
        _of_asyncpg(connection)
        try:
            text = (
                "null"
                if payload is None
                else encode(payload, "the payload of a signal", LARGEST_PAYLOAD)
            )
        except NotStorable as error:
            raise ConfigurationError(str(error)) from None
        on = connection if connection is not None else await self._sessions.pool()
        return await signal_calls.send_signal(on, key, text)

    async def pause(self, queue: str) -> bool:
        """Stop claims from a queue."""
        check_queue(queue)
        return await client_calls.pause_queue(await self._sessions.pool(), queue)

    async def resume(self, queue: str) -> bool:
        """Allow claims again."""
        check_queue(queue)
        return await client_calls.resume_queue(await self._sessions.pool(), queue)

    async def wait_ended(
        self, job_id: int, timeout: Duration | None, on_status: OnStatus | None
    ) -> JobStatus:
        """The status of the job once it has ended."""
        session = self._sessions.here()
        try:
            return await session.watcher.ended(job_id, timeout, on_status)
        finally:
            self._sessions.drop_if_unused(session)


def _of_asyncpg(connection: Any) -> Fetches | None:
    if connection is not None and not callable(getattr(connection, "fetch", None)):
        what = type(connection)
        raise ConfigurationError(
            f"connection must be one of asyncpg, not {what.__module__}.{what.__qualname__}: with"
            " another driver call the SQL function, as docs/enqueue.md shows"
        )
    return cast("Fetches | None", connection)


def _traced(group: Alike, traceparent: str) -> Alike:
    if group.pattern.traceparent:
        return group
    return group._replace(pattern=replace(group.pattern, traceparent=traceparent))
