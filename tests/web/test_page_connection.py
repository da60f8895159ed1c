"""The connection that pages share."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.web.database import PageConnection, PageDatabase


async def test_who_closes_it_waits_for_what_it_closes_by_itself(
    unchanged_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that ends before would leave an open connection behind."""
    began, goes_on, really = asyncio.Event(), asyncio.Event(), LazyConnection.close

    async def close(connection: LazyConnection) -> None:
        began.set()
        await goes_on.wait()
        await really(connection)

    monkeypatch.setattr(LazyConnection, "close", close)
    database = PageDatabase(Settings.load(dsn=unchanged_dsn), lambda: unchanged_dsn)
    connection = PageConnection(database, linger=0)
    await connection.fetch("SELECT 1")
    await began.wait()
    closing = asyncio.create_task(connection.close())
    await asyncio.wait([closing], timeout=0.2)
    assert not closing.done()
    goes_on.set()
    await closing
