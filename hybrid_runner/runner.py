"""The composition root: puts settings, registry, client and worker together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Self, Unpack

from hybrid_runner.attach.source_calls import SourceCalls
from hybrid_runner.client.calls import Client
from hybrid_runner.client.handle import check_id
from hybrid_runner.client.job_calls import JobCalls
from hybrid_runner.client.outage import outlast
from hybrid_runner.client.session import Sessions
from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.declarations import Declarations
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.handlers.usual_slots import slots_by_queue, usual_slots
from hybrid_runner.model.job_events import JobEvent
from hybrid_runner.model.upkeep import Pruned
from hybrid_runner.schedules.schedule_calls import ScheduleCalls
from hybrid_runner.settings import SettingOptions, Settings
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.pool import Pool, open_pool
from hybrid_runner.storage.migrations import migrate, refuse_unreleased, require_schema
from hybrid_runner.storage.queries import Migration
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.stream.following import Following

if TYPE_CHECKING:
    from hybrid_runner.embedded import EmbeddedPostgres
    from hybrid_runner.worker.report.status import WorkerStatus
    from hybrid_runner.worker.worker import Worker

log = logging.getLogger("hybrid_runner")

_CLIENT_CONNECTIONS = 10
_PRUNE_TIMEOUT = 1800.0  # a large partition of which some jobs are kept is rewritten


class Runner(Declarations, JobCalls, SourceCalls, ScheduleCalls):
    """The application's side of hybrid_runner. Nothing is opened until it is needed."""

    def __init__(self, dsn: str | None = None, **settings: Unpack[SettingOptions]) -> None:
        self.settings = Settings.load(dsn=dsn, **settings)
        self.registry = Registry()
        self.embedded: EmbeddedPostgres | None = None
        self._starting = threading.Lock()
        self._dsn = self.settings.database.dsn
        self._sessions = Sessions(self._new_pool)
        self._client = Client(self._sessions, self.registry)
        self._following = Following(self.page_database)

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

    # --- jobs

    async def events(self, job_id: int, *, follow_ups: bool = False) -> AsyncGenerator[JobEvent]:
        """Where a job stands at once, then each change until it has ended; with `follow_ups` the
        same of the jobs that its end has stored. An outage of Postgres does not end it.
        """
        check_id(job_id)
        await self.open()
        async with aclosing(self._following.events(job_id, follow_ups=follow_ups)) as events:
            async for event in events:
                yield event

    async def prune(self) -> Sequence[Pruned]:
        """Delete now the ended jobs that are no longer kept, as workers do every ten minutes."""
        from hybrid_runner.upkeep.duties.prune import Prune  # noqa: PLC0415  # slow, and seldom needed

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
        await self._following.close()
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
        from hybrid_runner.worker.worker import Worker  # noqa: PLC0415  # of use to nobody who only puts jobs in

        slots = slots_by_queue(self.registry, self.settings.work, queues)
        self.registry.slots |= slots
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
        from hybrid_runner.web.server import PageServer  # noqa: PLC0415  # only for who works
        from hybrid_runner.worker.signals import stop_on_signals  # noqa: PLC0415  # only for who works

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
        from hybrid_runner.telemetry.metrics.export import exporting_metrics  # noqa: PLC0415  # only for who works
        from hybrid_runner.telemetry.tracing.export import exporting  # noqa: PLC0415  # only for who works
        from hybrid_runner.web.pages.metric_values import metric_values_of  # noqa: PLC0415  # only for who works

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
