"""Everything in one process: a Postgres, the application's tables, its page, a worker."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys

from aiohttp import web

from examples.execution_jobs.app import QUEUE, app, attach
from examples.execution_jobs.application import Application
from examples.execution_jobs.page import make_page
from hybrid_runner import ConfigurationError, RunnerError
from hybrid_runner.worker.signals import stop_on_signals


def port() -> int:
    said = os.environ.get("EXECUTION_JOBS_PORT", "8710")
    if not (said.isdecimal() and 0 < int(said) < 65536):
        raise ConfigurationError(f"EXECUTION_JOBS_PORT must be a port, such as 8710, not {said!r}")
    return int(said)


async def main() -> None:
    where = port()
    await app.migrate()
    application = Application(lambda: app.dsn)
    await application.create_tables()
    await attach()
    pages = web.AppRunner(make_page(application), access_log=None, shutdown_timeout=0.5)
    await pages.setup()
    async with app, app.worker({QUEUE: 2}):
        try:
            await web.TCPSite(pages, "127.0.0.1", where).start()
            print(f"http://127.0.0.1:{where}  (Ctrl-C ends it)", flush=True)
            await stop_on_signals().wait()
        finally:
            await pages.cleanup()
            await application.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        asyncio.run(main())
    except RunnerError as error:
        sys.exit(f"browser tests: {error}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit(f"browser tests: {error.strerror}: take another port by EXECUTION_JOBS_PORT=8800")
