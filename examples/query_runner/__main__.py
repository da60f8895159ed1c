"""Everything in one process: a Postgres, the fake warehouse, a worker of two slots, the page."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys

from aiohttp import web

from examples.query_runner.app import QUEUE, app, runs
from examples.query_runner.fake.server import FakeWarehouse
from examples.query_runner.page import make_page
from examples.query_runner.warehouse import warehouse
from hybrid_runner import ConfigurationError, RunnerError
from hybrid_runner.worker.signals import stop_on_signals


def port() -> int:
    """Where the page is; the warehouse has the port behind it."""
    said = os.environ.get("QUERY_RUNNER_PORT", "8700")
    if not (said.isdecimal() and 0 < int(said) < 65535):
        raise ConfigurationError(f"QUERY_RUNNER_PORT must be a port, such as 8700, not {said!r}")
    return int(said)


async def main() -> None:
    page = port()
    await app.migrate()
    await runs.create_table()
    pages = web.AppRunner(
        make_page(), access_log=None, shutdown_timeout=0.5, handler_cancellation=True
    )
    await pages.setup()
    async with FakeWarehouse(port=page + 1) as fake, app, app.worker({QUEUE: 2}):
        warehouse.url = fake.url
        try:
            await web.TCPSite(pages, "127.0.0.1", page).start()
            print(f"http://127.0.0.1:{page}  (Ctrl-C ends it)", flush=True)
            await stop_on_signals().wait()
        finally:
            await pages.cleanup()
            await runs.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        asyncio.run(main())
    except RunnerError as error:
        sys.exit(f"query runner: {error}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit(f"query runner: {error.strerror}: take another port by QUERY_RUNNER_PORT=8800")
