"""Databases in which monitors are installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.monitor_schema import install_monitors
from tests.support.server import Databases


@pytest.fixture(scope="session")
def monitors_template(databases: Databases, template: str) -> Iterator[str]:
    """The name of a database with monitors that nobody is connected to."""
    name = databases.create(template)
    asyncio.run(_install(databases.server.dsn_of(name)))
    yield name
    databases.drop(name)


async def _install(dsn: str) -> None:
    connection = await connect(dsn)
    await install_monitors(connection)
    await connection.close()


@pytest.fixture
def monitors_dsn(databases: Databases, monitors_template: str) -> Iterator[str]:
    """A database with monitors of this test's own."""
    with databases.fresh(monitors_template) as dsn:
        yield dsn


@pytest.fixture
async def monitored(monitors_dsn: str) -> AsyncIterator[Connection]:
    """A connection to it."""
    connection = await connect(monitors_dsn)
    yield connection
    await connection.close()
