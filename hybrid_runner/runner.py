"""The composition root: puts settings, registry, client and worker together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

from hybrid_runner.client.calls import Client
from hybrid_runner.client.handle import JobHandle
from hybrid_runner.client.options import EnqueueManyOptions, EnqueueOptions
from hybrid_runner.client.outage import outlast
from hybrid_runner.client.session import Sessions
from hybrid_runner.durations import Duration, parse_optional
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.declaration import JobDecorator, make_kind
from hybrid_runner.handlers.kind import Executor, JobKind, Limits
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.handlers.usual_slots import slots_by_queue, usual_slots
from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import (
    MAX_ATTEMPTS,
    Enqueued,
    JobSummary,
    JobView,
    Keep,
    NewJob,
    State,
)
from hybrid_runner.model.upkeep import Pruned
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.settings import SettingOptions, Settings
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.pool import Pool, open_pool
from hybrid_runner.storage.migrations import migrate, refuse_unreleased, require_schema
from hybrid_runner.storage.queries import Migration
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.export import exporting_metrics
from hybrid_runner.telemetry.tracing.export import exporting
from hybrid_runner.upkeep.duties.prune import Prune
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.pages.metric_values import metric_values_of
from hybrid_runner.web.server import PageServer
from hybrid_runner.worker.report.status import WorkerStatus
from hybrid_runner.worker.signals import stop_on_signals
from hybrid_runner.worker.worker import Worker

if TYPE_CHECKING:
    from hybrid_runner.embedded import EmbeddedPostgres

log = logging.getLogger("hybrid_runner")

P = TypeVar("P")
R = TypeVar("R")

_CLIENT_CONNECTIONS = 10
_NO_PAYLOAD: Any = {}
_PRUNE_TIMEOUT = 1800.0  # a large partition of which some jobs are kept is rewritten


class Runner:
    """The application's side of hybrid_runner. Nothing is opened until it is needed."""

    def __init__(self, dsn: str | None = None, **settings: Unpack[SettingOptions]) -> None:
        self.settings = Settings.load(dsn=dsn, **settings)
        self.registry = Registry()
        self.embedded: EmbeddedPostgres | None = None
        self._starting = threading.Lock()
        self._dsn = self.settings.database.dsn
        self._sessions = Sessions(self._new_pool)
        self._client = Client(self._sessions, self.registry)

    def use(self, dsn: str | None = None, **settings: Unpack[SettingOptions]) -> None:
        """Replace settings of a runner that is not open yet; another `dsn` also forgets the
        `listen_dsn` of the old one.
        """
        if self._sessions.is_open or self.embedded is not None:
            raise ConfigurationError(
                "the runner is open already: its settings can no longer be replaced"
            )
        self.settings = self.settings.replaced(dsn=dsn, **settings)
        self._dsn = self.settings.database.dsn

    # --- handlers

    def job(
        self,
        name: str,
        *,
        queue: str = "default",
        max_attempts: int = MAX_ATTEMPTS,
        timeout: Duration | None = "1h",
        executor: Executor | None = None,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
        limits: Limits = "ceiling",
        keep_completed: Duration | None = None,
        keep_failed: Duration | None = None,
        keep_cancelled: Duration | None = None,
    ) -> JobDecorator:
        """Make a function the handler of a kind. `timeout=None` lets it run for ever;
        `limits="default"` lets a job ask for more than `max_attempts` and `timeout`; `keep_…` says
        how long ended jobs are kept.
        """
        if not isinstance(name, str):
            raise ConfigurationError(
                'the kind is missing: write @app.job("name") above the handler'
            )
        limit = parse_optional(timeout)
        keep = Keep(*map(parse_optional, (keep_completed, keep_failed, keep_cancelled)))

        def decorate(function: Callable[..., Any]) -> JobKind[Any, Any]:
            kind = make_kind(
                function,
                name=name,
                queue=queue,
                executor=executor,
                max_attempts=max_attempts,
                timeout=limit,
                retry=retry,
                keep=keep,
                limits=limits,
            )
            self.registry.add(kind)
            return kind

        return cast("JobDecorator", decorate)

    # --- putting jobs in

    @overload
    async def enqueue(
        self, kind: JobKind[P, R], payload: P, **options: Unpack[EnqueueOptions]
    ) -> JobHandle[R]: ...
    @overload
    async def enqueue(
        self, kind: str, payload: Any = ..., **options: Unpack[EnqueueOptions]
    ) -> JobHandle[Any]: ...
    async def enqueue(
        self,
        kind: JobKind[Any, Any] | str,
        payload: Any = _NO_PAYLOAD,
        **options: Unpack[EnqueueOptions],
    ) -> JobHandle[Any]:
        """Store one job; with `connection` in the caller's transaction. `handle.enqueued` says what
        became of its key.

        The options are explained in `EnqueueOptions` and docs/enqueue.md.
        """
        return await self._client.enqueue(kind, payload, options)

    @overload
    async def enqueue_many(
        self,
        kind: JobKind[P, R],
        payloads: Iterable[P | NewJob],
        *,
        key: Callable[[P], str | None] | None = ...,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]: ...
    @overload
    async def enqueue_many(
        self,
        kind: str,
        payloads: Iterable[Any],
        *,
        key: Callable[[Any], str | None] | None = ...,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]: ...
    async def enqueue_many(
        self,
        kind: JobKind[Any, Any] | str,
        payloads: Iterable[Any],
        *,
        key: Callable[[Any], str | None] | None = None,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]:
        """Store many jobs in one statement, all or none; `key` makes each job's key of its payload.

        A `NewJob` among the payloads has its own kind and key. The options count for it too; where
        it says something else itself, the call is refused.
        """
        return await self._client.enqueue_many(kind, payloads, key, options)

    # --- looking at jobs and changing them

    @overload
    def handle(self, job_id: int, kind: JobKind[P, R]) -> JobHandle[R]: ...
    @overload
    def handle(self, job_id: int) -> JobHandle[Any]: ...
    def handle(self, job_id: int, kind: JobKind[Any, Any] | None = None) -> JobHandle[Any]:
        """A handle on a job that somebody else enqueued.

        With its handler given, `wait` knows the type of its result.
        """
        return JobHandle(self._client, job_id, "exists", kind)

    async def get(self, job_id: int) -> JobView | None:
        """One job, live or archived."""
        return await self._client.get(job_id)

    async def list_jobs(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        kind: str | None = None,
        most: int = 50,
    ) -> Sequence[JobSummary]:
        """The newest jobs that match."""
        wanted = None if state is None else State(state)
        return await self._client.list_jobs(wanted, queue, kind, most)

    async def cancel(self, job_id: int, reason: str | None = None) -> CancelAnswer:
        """cancelled, requested (it runs and was told), finished or unknown."""
        return await self._client.cancel(job_id, reason)

    async def retry(self, job_id: int) -> RetryAnswer:
        """Run an ended job again, a waiting one now."""
        return await self._client.retry(job_id)

    async def amend(
        self,
        job_id: int,
        *,
        version: int,
        payload: Any = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        data: Any = None,
    ) -> AmendAnswer:
        """Change a job that waits, if it is still at `version`."""
        return await self._client.amend(job_id, version, payload, priority, run_at, data)

    async def pause(self, queue: str) -> bool:
        """No worker claims from the queue until it is resumed; False when it was paused already."""
        return await self._client.pause(queue)

    async def resume(self, queue: str) -> bool:
        """Workers claim again; False when it was not paused."""
        return await self._client.resume(queue)

    async def prune(self) -> Sequence[Pruned]:
        """Delete now the ended jobs that are no longer kept, as workers do every ten minutes."""
        await self.open()
        connection = LazyConnection(self.dsn, timeout=_PRUNE_TIMEOUT)
        try:
            return await Prune().run(connection)
        finally:
            await connection.close()

    # --- life

    @property
    def dsn(self) -> str:
        """The Postgres in use; known once the runner is open."""
        if self._dsn is None:
            raise ConfigurationError(
                "the embedded Postgres is not started yet: `await app.open()` first"
            )
        return self._dsn

    async def open(self, wait: Duration | None = None) -> None:
        """Start the embedded Postgres if there is no DSN, and check that the server answers; with
        `wait`, one that does not answer yet is waited for.
        """
        await self._sessions.pool(wait)

    async def connect(self, wait: Duration | None = None) -> Connection:
        """One new connection; with `wait`, a server that does not answer yet is waited for."""
        if self._dsn is None:
            await self._start_embedded()
        return await outlast(lambda: connect(self.dsn), wait)

    async def migrate(self, wait: Duration | None = None) -> list[Migration]:
        """Bring the database to this version's schema; the steps that were applied."""
        connection = await self.connect(wait)
        try:
            return await migrate(connection, self.connect)
        finally:
            await connection.close()

    async def close(self) -> None:
        """Close the connections, and end the embedded Postgres if this runner started it.
        OpenInAnotherLoop, and nothing is closed, while another event loop has it open.
        """
        session = self._sessions.release()
        try:
            if session is not None:
                await session.close()
        finally:
            embedded, self.embedded = self.embedded, None
            if embedded is not None:
                self._dsn = self.settings.database.dsn
                embedded.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- working

    def worker(
        self, queues: Mapping[str, int] | None = None, *, worker_id: str | None = None
    ) -> Worker:
        """A worker for these queues, each with its slots; the runner must be open.

        Without `queues` it works on `default` and on those of all handlers.
        """
        if not len(self.registry):
            raise ConfigurationError(
                "this app has no handlers: write one with @app.job(…) before starting a worker"
            )
        slots = slots_by_queue(self.registry, self.settings.work, queues)
        return Worker(
            self.dsn,
            self.settings,
            self.registry,
            slots,
            worker_id or self.settings.make_worker_id(),
        )

    def usual_slots(self, queue: str) -> int:
        """The slots of a queue for which none are given; where no handler is `async`, no more than
        there are threads and processes.
        """
        return usual_slots(self.registry, self.settings.work, queue)

    async def run_worker(self, queues: Mapping[str, int] | None = None) -> None:
        """Work until SIGTERM or SIGINT, then shut down in order; a second signal ends at once."""
        async with PageServer(
            self.settings.pages.http_host,
            self.settings.pages.http_port,
            database=self.page_database(),
        ) as pages:
            await self.work(queues, pages.show, stop_on_signals)

    def page_database(self) -> PageDatabase:
        """Where the HTTP pages get jobs from; without a DSN until the runner is open."""
        return PageDatabase(self.settings, lambda: self._dsn)

    async def work(
        self,
        queues: Mapping[str, int] | None,
        show: Callable[[Callable[[], WorkerStatus]], None],
        stop_on_signals: Callable[[], asyncio.Event],
    ) -> None:
        """`run_worker` with pages and signals of the caller's own: once the worker has started,
        `show` is given the function that makes its snapshots.
        """
        await self.open(wait=self.settings.database.start_timeout)
        try:
            pool = await self._sessions.pool()
            await outlast(lambda: require_schema(pool), self.settings.database.start_timeout)
            worker = self.worker(queues)
            async with (
                exporting(worker.id),
                exporting_metrics(worker.id, lambda: metric_values_of(worker.status())),
            ):
                await outlast(
                    worker.start, self.settings.database.start_timeout
                )  # one connection may work and the next be refused
                stop = stop_on_signals()
                try:
                    show(worker.status)
                    await stop.wait()
                finally:
                    await worker.stop()
        finally:
            await self.close()

    # --- inside

    async def _new_pool(self, wait: Duration | None) -> Pool:
        connection = await self.connect(wait)  # the server answers, and what is wrong is said now
        try:
            await refuse_unreleased(connection)
        finally:
            await connection.close()
        return await open_pool(self.dsn, largest=_CLIENT_CONNECTIONS)

    async def _start_embedded(self) -> None:
        embedded = await asyncio.to_thread(self._use_embedded)
        connection = await connect(embedded.dsn)
        try:
            await migrate(connection, lambda: connect(embedded.dsn))
        finally:
            await connection.close()
        self._dsn = embedded.dsn

    def _use_embedded(self) -> EmbeddedPostgres:
        from hybrid_runner.embedded import use_embedded  # noqa: PLC0415  # of use to nobody who has a DSN

        with self._starting:
            if self.embedded is None:
                self.embedded = use_embedded(self.settings.database.embedded_directory)
                log.warning(
                    "no HYBRID_RUNNER_DSN: using the embedded Postgres in %s; look inside with: %s",
                    self.embedded.directory,
                    self.embedded.psql,
                    extra=log_event("postgres.embedded"),
                )
            return self.embedded
