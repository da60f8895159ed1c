"""The calls of applications: enqueue jobs, wait for them, read them, change them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from hybrid_runner.client.handle import JobHandle
from hybrid_runner.client.new_jobs import KeyOf, located, new_job, new_jobs
from hybrid_runner.client.options import given
from hybrid_runner.client.session import Sessions
from hybrid_runner.client.waiting import OnStatus
from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError, EnqueueError, ValueRefused
from hybrid_runner.handlers.kind import JobKind, check_queue
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import Enqueued, JobStatus, JobSummary, JobView, OnConflict, State
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.alike import Alike
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.publish_span import publish_span

log = logging.getLogger("hybrid_runner")

P = TypeVar("P")
R = TypeVar("R")


class Client:
    """Makes the calls on the connections of the running event loop."""

    def __init__(self, sessions: Sessions, registry: Registry) -> None:
        self._sessions = sessions
        self.registry = registry

    async def enqueue(
        self, kind: JobKind[P, R] | str, payload: Any, options: Mapping[str, Any]
    ) -> JobHandle[R]:
        """Store one job, in the caller's transaction when a connection is given."""
        chosen = given(options)
        on_conflict, connection = _call_options(chosen)
        job = new_job(self.registry, kind, payload, chosen)
        on = connection if connection is not None else await self._sessions.pool()
        queue = job.queue or "default"
        with publish_span(queue, job.kind) as publish:
            if publish.traceparent is not None:
                job = replace(job, traceparent=publish.traceparent)
            enqueued = await client_calls.enqueue_job(on, job, on_conflict)
            publish.set_result([enqueued.id], enqueued.enqueued)
        log.debug(
            "enqueued %s in %s: %s",
            job.kind,
            queue,
            enqueued.enqueued,
            extra=log_event("job.enqueued", job=enqueued.id),
        )
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
        on_conflict, connection = _call_options(chosen)
        groups = new_jobs(self.registry, kind, payloads, key, chosen)
        if not groups:
            return []
        on = connection if connection is not None else await self._sessions.pool()
        first, count = groups[0].pattern, sum(len(group.payloads) for group in groups)
        with publish_span(first.queue or "default", first.kind, count) as publish:
            if publish.traceparent is not None:
                groups = [_traced(group, publish.traceparent) for group in groups]
            try:
                enqueued = await client_calls.enqueue_groups(on, groups, on_conflict)
            except (EnqueueError, ValueRefused) as error:
                raise located(error, groups) from error
            publish.set_result([job.id for job in enqueued])
            return enqueued

    async def get(self, job_id: int) -> JobView | None:
        """One job, live or archived."""
        return await client_calls.get_job(await self._sessions.pool(), job_id)

    async def list_jobs(
        self, state: State | None, queue: str | None, kind: str | None, most: int
    ) -> Sequence[JobSummary]:
        """The newest jobs that match."""
        on = await self._sessions.pool()
        return await client_calls.list_jobs(on, state, queue, kind, most)

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
            text = None if payload is None else await self._amended(on, job_id, payload)
            memory = None if data is None else encode(data, "the data")
        except NotStorable as error:
            raise ConfigurationError(f"job {job_id}: {error}") from None
        return await client_calls.amend_job(on, job_id, version, text, priority, run_at, memory)

    async def _amended(self, on: Fetches, job_id: int, payload: Any) -> str:
        """The payload as the job's handler takes it, where its code is at hand."""
        job = await client_calls.get_job(on, job_id)
        kind = None if job is None else self.registry.get(job.kind)
        return encode(payload, "the payload") if kind is None else kind.encode(payload)

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


def _call_options(options: dict[str, Any]) -> tuple[OnConflict, Fetches | None]:
    """Take the options out that are no property of the job."""
    on_conflict = options.pop("on_conflict", "exists")
    if on_conflict not in ("exists", "replace", "error"):
        raise ConfigurationError(
            f"on_conflict must be 'exists', 'replace' or 'error', not {on_conflict!r}"
        )
    return on_conflict, options.pop("connection", None)


def _traced(group: Alike, traceparent: str) -> Alike:
    if group.pattern.traceparent:
        return group
    return group._replace(pattern=replace(group.pattern, traceparent=traceparent))
