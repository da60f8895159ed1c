"""Serves the pages for as long as a worker lives, from a thread of its own: a handler that holds up the worker's loop shows.

A port that is taken costs one warning, never the worker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Self

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.reports import Reports, WorkerReports
from hybrid_runner.web.source import JobSource
from hybrid_runner.worker.status import WorkerStatus

if TYPE_CHECKING:
    from aiohttp.web import AppRunner

log = logging.getLogger("hybrid_runner.web")


class HealthServer:
    """Listens from before its worker starts until it has stopped; port 0: not at all."""

    def __init__(self, host: str, port: int, reports: Reports | None = None, jobs: JobSource | None = None) -> None:
        self._host = host
        self._jobs = jobs
        self._port = port
        self._reports = reports or WorkerReports(self._snapshot)
        self._look: Callable[[], WorkerStatus] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runner: AppRunner | None = None
        self._trouble: OSError | None = None

    def show(self, look: Callable[[], WorkerStatus]) -> None:
        """The worker has started: these are its snapshots."""
        self._look = look
        self.announce()

    def announce(self) -> None:
        """Say where the pages are, or why not: once all has started, so that a start that fails stays one line."""
        if self._trouble is not None:
            log.warning(
                "no health pages: port %d of %s cannot be used (%s); set HYBRID_RUNNER_HTTP_PORT to a free one, or to 0 for none",
                self._port, self._host, self._trouble.strerror or self._trouble, extra=log_event("web.port_unusable")
            )  # fmt: skip
        elif self._runner is not None:
            log.info("health pages on port %d of %s", self._port, self._host, extra=log_event("web.started"))

    async def __aenter__(self) -> Self:
        if self._port:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="health", daemon=True)
            self._thread.start()
            await self._there(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is None or self._thread is None:
            return
        if self._runner is not None:
            await self._there(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _there(self, call: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None  # noqa: S101  # asked by those who know
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    async def _listen(self) -> None:
        from aiohttp import web  # noqa: PLC0415  # nearly as long as all of us, and only a worker needs it

        from hybrid_runner.web.jobpages import add_job_pages  # noqa: PLC0415  # the same
        from hybrid_runner.web.pages import make_application  # noqa: PLC0415  # the same
        from hybrid_runner.web.scale import add_scale_page  # noqa: PLC0415  # the same

        application = make_application(self._reports)
        if self._jobs is not None:
            add_job_pages(application, self._jobs, self._reports)
            add_scale_page(application, self._jobs)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            self._trouble = error
            await runner.cleanup()
        else:
            self._runner = runner

    def _snapshot(self) -> WorkerStatus | None:
        return None if self._look is None else self._look()
