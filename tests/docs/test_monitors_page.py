"""docs/monitors.md: its first chapter leads to a service that is polled; its Python is one module,
its SQL runs.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.monitor_schema import install_monitors
from tests.cli.running import succeeds, worker
from tests.docs.blocks import blocks
from tests.docs.test_pages import load
from tests.support.waiting import until_fetched

PAGE = "docs/monitors.md"
_AT_REST = """
    SELECT EXISTS (SELECT FROM hybrid_monitors.standings WHERE polled_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM hybrid_monitors.hosts WHERE round_services <> '{}')
"""
AS_WRITTEN = "http://127.0.0.1:8080/dependencies"


def commands() -> list[list[str]]:
    return [shlex.split(line) for block in blocks(PAGE, "sh") for line in block.text.splitlines()]


@pytest.fixture
async def orders() -> AsyncIterator[str]:
    """The address of a service that answers in the standard shape."""
    async with FakeServices([FakeService("orders")]) as fakes:
        yield fakes.url("orders")


async def test_five_minutes_lead_to_a_service_that_is_polled(
    empty_dsn: str, tmp_path: Path, orders: str
) -> None:
    """C1, C8"""

    async def run(command: list[str]) -> str:
        name, *words = (word.replace(AS_WRITTEN, orders) for word in command)
        assert name == "hybrid-runner"
        return await asyncio.to_thread(succeeds, *words, "--dsn", empty_dsn)

    migrate, monitors, work, list_, show, test = commands()
    handler, *_ = blocks(PAGE, "python")
    (tmp_path / "tasks.py").write_text(handler.text, encoding="utf-8")
    await run(migrate)
    await run(monitors)
    async with worker(*work[2:], cwd=tmp_path, HYBRID_RUNNER_DSN=empty_dsn) as running:
        await running.says("listening on")
        insert, *_ = blocks(PAGE, "sql")
        database = await connect(empty_dsn)
        await database.execute(insert.text.replace(AS_WRITTEN, orders))
        await until_fetched(database, "SELECT count(*) FROM hybrid_monitors.dependencies", 5)
        assert "orders" in await run(list_)
        assert "database" in await run(show)
        assert "smtp" in await run(test)
        await database.close()


async def test_what_the_page_says_in_sql_runs(database: Connection) -> None:
    await install_monitors(database)
    for block in blocks(PAGE, "sql"):
        await database.execute(block.text)
    assert await database.fetchval("SELECT count(*) FROM hybrid_monitors.services") == 3


async def test_its_python_is_a_module_and_works_by_hand(
    dsn: str, database: Connection, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install_monitors(database)
    text = "".join(block.text for block in blocks(PAGE, "python"))
    at = "https://orders.internal/dependencies"
    module = load("monitors_page", text.replace(at, orders))
    del sys.modules["monitors_page"]
    module.app.use(dsn=dsn)
    async with module.app, module.app.worker():
        await module.add()
        # Whoever asks for a poll while one is on its way is refused.
        await until_fetched(database, _AT_REST, True)
        await module.look()
    assert await database.fetchval("SELECT count(*) FROM hybrid_monitors.services") == 0
