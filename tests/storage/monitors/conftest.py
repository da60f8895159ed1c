from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.server import Databases


@pytest.fixture(scope="package")
def shared_dsn(databases: Databases, monitors_template: str) -> Iterator[str]:
    """One database for all tests that leave nothing behind."""
    with databases.fresh(monitors_template) as dsn:
        yield dsn


@pytest.fixture
async def undone(shared_dsn: str) -> AsyncIterator[Connection]:
    """A connection to it, in a transaction that is rolled back."""
    connection = await connect(shared_dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()
