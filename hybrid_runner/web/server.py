"""Serves the pages for as long as a worker lives, in a thread of its own: they answer while
a handler holds up the worker's event loop.

If the port is taken, the worker runs without pages, after one warning.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Self

from hybrid_runner.settings.sections import Pages
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.pages.reports import PageReports, WorkerReports
from hybrid_runner.web.seldom import Seldom
from hybrid_runner.worker.report.status import WorkerStatus

if TYPE_CHECKING:
    from aiohttp.web import AppRunner

    from hybrid_runner.web.accepting import Acceptor

log = logging.getLogger("hybrid_runner.web")


class PageServer:
    """Listens from before the worker starts until it has stopped; port 0 means no pages."""

    def __init__(
        self,
        host: str,
        port: int,
        reports: PageReports | None = None,
        database: PageDatabase | None = None,
    ) -> None:
        self._host = host
        self._database = database
        self._port = port
        self._reports = reports or WorkerReports(self._status)
        self._worker_status: Callable[[], WorkerStatus] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runner: AppRunner | None = None
        self._acceptor: Acceptor | None = None
        self._failed = Seldom()
        self._listen_error: OSError | None = None

    def show(self, worker_status: Callable[[], WorkerStatus]) -> None:
        """Show this worker from now on: it has started."""
        self._worker_status = worker_status
        self.announce()

    def announce(self) -> None:
        """Log where the pages are, or why there are none. Called once everything has started: a
        start that fails logs one line, its error.
        """
        if self._listen_error is not None:
            log.warning(
                "no health pages: port %d of %s cannot be used (%s); set HYBRID_RUNNER_HTTP_PORT to"
                " a free one, or to 0 for none",
                self._port,
                self._host,
                self._listen_error.strerror or self._listen_error,
                extra=log_event("web.port_unusable"),
            )
        elif self._runner is not None:
            log.info(
                "health pages on port %d of %s",
                self._port,
                self._host,
                extra=log_event("web.started"),
            )

    async def __aenter__(self) -> Self:
        if self._port:
            self._loop = asyncio.new_event_loop()
            self._loop.set_exception_handler(self._on_loop_error)
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="health", daemon=True
            )
            self._thread.start()
            await self._in_thread(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is None or self._thread is None:
            return
        await self._in_thread(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _in_thread(self, call: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None  # noqa: S101  # the callers have looked
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    async def _listen(self) -> None:
        # aiohttp takes nearly as long to import as all of us, and only a worker needs it.
        from aiohttp import web  # noqa: PLC0415  # see above

        from hybrid_runner.web import accepting, connections, routes  # noqa: PLC0415  # they import aiohttp
        from hybrid_runner.web.hosts import HostCheck  # noqa: PLC0415  # the same

        try:
            sockets = await accepting.listening_sockets(self._host, self._port)
        except OSError as error:
            self._listen_error = error
            return
        settings = Pages() if self._database is None else self._database.settings.pages
        most = connections.most_connections(settings.http_connections or 4 * settings.http_readers)
        hosts = HostCheck(
            [each.getsockname()[0] for each in sockets], settings.http_hosts, settings.http_url
        )
        application = routes.make_application(
            self._reports,
            self._database,
            hosts=hosts,
            readers=connections.most_readers(settings.http_readers, most),
        )
        self._runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=1)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101  # setup has made it
        every = connections.HttpConnections(most)
        self._acceptor = accepting.Acceptor(
            sockets, every, lambda: connections.HttpConnection(server, every)
        )
        self._acceptor.start()

    async def _close(self) -> None:
        if self._acceptor is not None:
            await self._acceptor.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_loop_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self._failed.is_due():
            log.error(
                "the pages: %s",
                context.get("message"),
                exc_info=context.get("exception"),
                extra=log_event("web.failed"),
            )

    def _status(self) -> WorkerStatus | None:
        return None if self._worker_status is None else self._worker_status()
