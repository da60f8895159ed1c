"""Tables are attached anew and detached while applications insert and workers work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.own_tables import ASKED, ORDERS, made_for_sources
from tests.support.waiting import until


@pytest.fixture
async def app(dsn: str, database: Connection) -> AsyncIterator[Runner]:
    """With a handler that notes which rows it was given."""
    await database.execute(ORDERS)
    async with Runner(dsn) as app:

        @app.job("order")
        async def order(row: dict[str, Any]) -> int:
            return int(row["id"])

        yield app


@asynccontextmanager
async def inserting(dsn: str, database: Connection) -> AsyncIterator[None]:
    """Three clients insert; whoever enters or leaves has seen some more rows."""
    stop = asyncio.Event()

    async def insert() -> None:
        connection = await connect(dsn)
        while not stop.is_set():
            await connection.execute("INSERT INTO public.orders DEFAULT VALUES")
        await connection.close()

    clients = [asyncio.create_task(insert()) for _ in range(3)]
    try:
        await more_rows(database)
        yield
        await more_rows(database)
    finally:
        stop.set()
        await asyncio.gather(*clients)


async def more_rows(database: Connection) -> None:
    count = "SELECT count(*) FROM public.orders"
    before = await database.fetchval(count)
    await until(lambda: database.fetchval(count), lambda now: now > before + 20)


async def words(database: Connection) -> Counter[str]:
    rows = await database.fetch("SELECT status FROM public.orders")
    return Counter(row[0] for row in rows)


async def test_a_table_is_attached_anew_while_its_rows_are_inserted_and_worked_on(
    app: Runner, dsn: str, database: Connection
) -> None:
    """No INSERT fails, and every row is worked on once."""
    await app.attach("orders", **ASKED)
    async with app.worker():
        async with inserting(dsn, database):
            for _ in range(5):
                await more_rows(database)
                await app.attach("orders", **ASKED)
        await until(lambda: words(database), lambda seen: {*seen} == {"done"})
    assert await database.fetchval("SELECT bool_and(result::text = id::text) FROM public.orders")
    assert await database.fetchval(
        "SELECT count(*) FROM hybrid_runner.archive"
    ) == await database.fetchval("SELECT count(*) FROM public.orders")


async def test_a_table_is_detached_while_its_rows_are_inserted_and_worked_on(
    app: Runner, dsn: str, database: Connection
) -> None:
    """No INSERT fails, no row is left as if somebody worked on it, and what waits is worked on once
    the table is attached again.
    """
    await app.attach("orders", **ASKED)
    async with app.worker():
        async with inserting(dsn, database):
            await until(lambda: words(database), lambda seen: "done" in seen)
            await app.detach("orders")
        assert {*await words(database)} == {"done", "waiting"}
        assert await made_for_sources(database) == []
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
        await app.attach("orders", **ASKED)
        await until(lambda: words(database), lambda seen: {*seen} == {"done"})
