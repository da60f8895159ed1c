"""/metrics and /scale of several processes behind one port: real processes, and real deaths."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from tests.cli.fleets import (
    ARCHIVED,
    INSERT,
    TASKS,
    close_gate,
    fleet,
    open_gate,
    pids,
    send,
)
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.scraping import scrape
from tests.support.waiting import until, until_fetched


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


async def test_the_parent_shows_the_sum_and_what_a_dead_process_counted_stays(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = free_port()
    arguments = ("--dsn", dsn, "--queue", "default=2")
    async with (
        fleet(*arguments, cwd=folder, HYBRID_RUNNER_HTTP_PORT=str(port)) as process,
        browser(port) as client,
    ):
        await process.works()
        await database.execute(INSERT, "pid", 60)
        await until_fetched(database, ARCHIVED, 60)
        families = await until(
            lambda: scrape(port),
            lambda seen: seen["run_duration_seconds"].of(outcome="completed") == 60,
        )
        assert families.keys() == {
            instrument.name.removeprefix("hybrid_runner_") for instrument in INSTRUMENTS
        }
        assert (
            families["workers"].of(),
            families["slots"].of(queue="default"),
            families["doorbell_mode"].of(),
        ) == (2, 4, 2)
        assert families["process_restarts_total"].of() == 0
        assert (await client.get("/scale")).body["slots"] == 4

        first, second = await pids(client)
        close_gate(folder)
        send(signal.SIGKILL, first)
        # Counters are looked at all the time, from before its end is known until the next one
        # works: they never go down.
        while (families := await scrape(port))["workers"].of() != 1:
            assert families["run_duration_seconds"].of() == 60
        open_gate(folder)
        while (families := await scrape(port))["workers"].of() != 2:
            assert families["run_duration_seconds"].of() == 60
            assert families["slots"].of() in (2, 4)
        assert families["process_restarts_total"].of() == 1
        assert await pids(client) != [first, second]
        await database.execute(INSERT, "pid", 40)
        while (families := await scrape(port))["run_duration_seconds"].of() != 100:
            assert families["run_duration_seconds"].of() >= 60
            await asyncio.sleep(0.02)
        assert await process.ends() == 0


async def test_a_silent_process_shows_no_gauges(dsn: str, folder: Path) -> None:
    """Nobody knows any more what it runs and measures."""
    port = free_port()
    async with (
        fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_HTTP_PORT=str(port)) as process,
        browser(port) as client,
    ):
        await process.works()
        frozen, _ = await pids(client)
        send(signal.SIGSTOP, frozen)
        try:
            families = await until(lambda: scrape(port), lambda seen: seen["workers"].of() == 1)
            assert families["polls_total"].of() >= 0
        finally:
            send(signal.SIGCONT, frozen)
        await until(lambda: scrape(port), lambda seen: seen["workers"].of() == 2)
        assert await process.ends() == 0
