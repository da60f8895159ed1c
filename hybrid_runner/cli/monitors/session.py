"""A connection to a database with monitors, for the length of one command."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hybrid_runner.cli.session import make_runner
from hybrid_runner.errors import SchemaMissing
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection

ABSENT = (
    "monitors are not installed in this database: run `hybrid-runner monitors migrate` with the"
    " same DSN"
)


@asynccontextmanager
async def monitored(arguments: argparse.Namespace) -> AsyncIterator[Connection]:
    """An open connection; a server that does not answer, or has no monitors, is an error at
    once.
    """
    app = make_runner(arguments, quiet=True)
    try:
        connection = await app.connect()
        try:
            if not await monitor_view_calls.has_monitors(connection):
                raise SchemaMissing(ABSENT)
            yield connection
        finally:
            await connection.close()
    finally:
        await app.close()
