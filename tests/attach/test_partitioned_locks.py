"""Attach again and detach, of tables with partitions, beside transactions of the application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.own_tables import ASKED
from tests.support.waiting import until

PARTITIONED = """
CREATE TABLE public.orders (
    id bigint, part integer, status text DEFAULT 'waiting', worker text, result jsonb,
    PRIMARY KEY (id, part)
) PARTITION BY LIST (part);
CREATE TABLE public.orders_0 PARTITION OF public.orders FOR VALUES IN (0);
CREATE TABLE public.orders_1 PARTITION OF public.orders FOR VALUES IN (1);
CREATE TABLE public.orders_2 PARTITION OF public.orders FOR VALUES IN (2);
"""
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE $1 = ANY (pg_blocking_pids(pid)) AND wait_event_type = 'Lock'
"""
UPDATE = "UPDATE public.orders SET worker = 'a' WHERE part = $1"
Change = Callable[[Runner], Coroutine[Any, Any, object]]


async def attach(app: Runner) -> object:
    return await app.attach("orders", **ASKED)


async def detach(app: Runner) -> object:
    return await app.detach("orders")


@pytest.fixture
async def application(dsn: str) -> AsyncIterator[Connection]:
    """A session that finds a deadlock as soon as there is one, and so is the one that ends."""
    connection = await connect(dsn)
    await connection.execute("SET deadlock_timeout = '10ms'")
    yield connection
    await connection.close()


@pytest.mark.parametrize("change", [attach, detach])
async def test_change_of_attached_partitions_never_deadlocks_with_writers(
    database: Connection, dsn: str, application: Connection, change: Change
) -> None:
    """Its transactions lock the table before its partitions."""
    await database.execute(PARTITIONED)
    async with Runner(dsn) as app:
        await attach(app)
        async with application.transaction():
            await application.execute(UPDATE, 1)
            changing = asyncio.create_task(change(app))
            await until(lambda: database.fetchval(WAITING, application.get_server_pid()))
            for part in (0, 2):
                await application.execute(UPDATE, part)
        await changing
