"""Acceptance of the health page on real failures, with default settings: 503 within 15 s, and 200
again by itself.

The 15 s are the arithmetic of
`test_the_worst_case_of_each_check_adds_up_to_less_than_fifteen_seconds`; on a busy machine each
test waits for longer, and what it waits for is the page.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import Worker
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages import health
from hybrid_runner.web.server import PageServer
from tests.cli.running import worker as worker_process
from tests.support import inside
from tests.support.bells import INSERT, seen, until_asleep, until_mode
from tests.support.faults import own_server
from tests.support.pages import Browser, browser
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.waiting import until
from tests.support.working import runner, working

LONGEST = 60.0
HOLDS_THE_LOOP = """
import time
from pathlib import Path
from hybrid_runner import Runner
from tests.support.waiting import until

app = Runner()

@app.job("hold_the_loop")
async def hold_the_loop(payload: dict) -> None:
    while not Path("let_go").exists():
        time.sleep(0.05)
"""


async def until_ill(client: Browser, name: str) -> str:
    """Until the page is 503 because of that check; its reason."""

    async def look() -> tuple[int, bool, str]:
        answer = await client.get("/health")
        [check] = [check for check in answer.body["checks"] if check["name"] == name]
        return answer.status, check["ok"], str(check["reason"])

    return (await until(look, lambda seen: seen[:2] == (503, False), patience=LONGEST))[2]


async def until_well(client: Browser) -> None:
    await until(
        lambda: client.get("/health"), lambda answer: answer.status == 200, patience=LONGEST
    )


@asynccontextmanager
async def a_worker_with_a_page(dsn: str, **settings: Any) -> AsyncIterator[tuple[Worker, Browser]]:
    """Without arguments all settings are the defaults: the promises hold for those."""
    usual: dict[str, Any] = {
        "slots": 200,
        "grace": "25s",
        "hybrid_poll_base": "30s",
        "hybrid_poll_cap": "60s",
    }
    app, port = runner(dsn, **(usual | settings)), free_port()
    ran = asyncio.Event()

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        ran.set()

    async with (
        PageServer("127.0.0.1", port) as pages,
        browser(port) as client,
        working(app) as running,
    ):
        await app.enqueue(note, {})
        await ran.wait()  # so that all connections are open
        await running.idle()
        pages.show(running.status)
        await until_well(client)
        yield running, client


def test_the_worst_case_of_each_check_adds_up_to_less_than_fifteen_seconds() -> None:
    """A11: a failure right after the last sign of life."""
    settings = Settings()
    beat = min(settings.work.heartbeat, settings.work.lease / 3).total_seconds() * health.SPREAD
    assert beat + health.LATE_BEAT < 14  # a server that is frozen
    assert beat + inside.PROOF_OVERDUE_AFTER < 14  # a listener that is dead, and does not know
    assert settings.work.stall_after.total_seconds() * 1.25 < 14
    assert max(health.HANGS_FROM, health.AWAY_FROM) < 14


async def test_a_stopped_postgres_is_503_and_its_return_is_200() -> None:
    """A11: a server that was shut down."""
    async with own_server() as server, a_worker_with_a_page(server.dsn) as (_, client):
        await server.stop(signal.SIGINT)
        assert "does not answer" in await until_ill(client, "postgres")
        ready = await client.get("/ready")
        assert (ready.status, ready.body["phase"]) == (503, "running")
        assert "nobody has had an answer for" in ready.body["reason"]
        await server.start()
        await until_well(client)
        assert (await client.get("/ready")).body == {"ready": True, "phase": "running"}


async def test_a_fleet_of_processes_is_not_ready_while_postgres_is_stopped(
    tmp_path: Path,
) -> None:
    """A11: a rollout does not go on over a fleet that takes nothing."""
    (tmp_path / "tasks.py").write_text(HOLDS_THE_LOOP)
    port = free_port()
    async with (
        own_server() as server,
        worker_process(
            *("tasks:app", "--dsn", server.dsn, "--processes", "2"),
            cwd=tmp_path,
            HYBRID_RUNNER_HTTP_PORT=str(port),
        ) as process,
        browser(port) as client,
    ):
        await client.until("/ready", 200)
        await server.stop(signal.SIGINT)
        ready = (await client.until("/ready", 503)).body
        assert (ready["ready"], ready["phase"], ready["processes"]) == (False, "running", 2)
        assert "process 1: " in ready["reason"] or "process 2: " in ready["reason"]
        await server.start()
        await until(
            lambda: client.get("/ready"), lambda answer: answer.status == 200, patience=LONGEST
        )
        assert await process.ends() == 0


async def test_a_frozen_postgres_is_503_and_its_return_is_200(dsn: str) -> None:
    """A11: a server, or a network, that keeps its connections and says nothing."""
    async with Proxy(dsn) as proxy, a_worker_with_a_page(proxy.dsn) as (_, client):
        proxy.freeze(newcomers=True)
        assert "one is due every 10 s" in await until_ill(client, "heartbeat")
        assert (await client.get("/ready")).status == 503
        proxy.thaw()
        await until_well(client)


async def test_a_listener_that_died_without_a_word_is_503_and_its_successor_is_200(
    dsn: str,
) -> None:
    """A3 A11: no end of its connection arrives; a ring of our own that does not come back is all
    there is to see.
    """
    async with Proxy(dsn) as proxy, a_worker_with_a_page(proxy.dsn) as (running, client):
        # Else it connects again three seconds after the page says so, or at once on a machine that
        # stood still: the page would never say so.
        given_up, hang_up = inside.hold_hang_up(running)
        proxy.freeze("listener")
        assert "does not hear our own rings" in await until_ill(client, "listener")
        assert (await client.get("/ready")).status == 200  # jobs are found by polling
        assert running.status().hearing  # it believes so
        await asyncio.wait_for(given_up.wait(), LONGEST)
        hang_up()
        await until_well(client)
        await asyncio.wait_for(running.hearing(), LONGEST)


async def test_a_claim_that_is_never_answered_is_503_and_its_answer_is_200(
    dsn: str, database: Connection
) -> None:
    """A11: polling has stopped, although every loop runs and Postgres answers everybody else."""
    async with Proxy(dsn) as proxy, a_worker_with_a_page(proxy.dsn) as (running, client):
        await until_asleep(database, running)
        proxy.freeze("claims")
        await database.execute(INSERT, "note")
        assert "default waits for an answer" in await until_ill(client, "polling")
        proxy.thaw()
        await until_well(client)
        await asyncio.wait_for(running.settled(2), LONGEST)


@pytest.mark.parametrize("name", ["claimer of default", "poller of default", "listener", "settler"])
async def test_a_killed_loop_is_503_and_is_started_again(
    name: str, dsn: str, database: Connection
) -> None:
    """A11: it goes on where it was: jobs are found and written down."""
    async with a_worker_with_a_page(dsn) as (running, client):
        inside.loop_of(running, name).cancel()
        assert name in await until_ill(client, "loops")
        await until_well(client)
        await until_mode(running, "asleep")
        await database.execute(INSERT, "note")
        await asyncio.wait_for(running.settled(2), LONGEST)


async def test_a_poller_that_hangs_is_503_and_its_next_poll_is_200(dsn: str) -> None:
    """A11: nothing has ended, and no poll comes."""
    goes_on = asyncio.Event()
    async with a_worker_with_a_page(dsn, hybrid_poll_base="1s", hybrid_poll_cap="1s") as (
        running,
        client,
    ):
        inside.hold_polls(running, goes_on)
        assert "the fallback poll of default is" in await until_ill(client, "polling")
        polls = seen(running).polls
        goes_on.set()
        await until_well(client)
        assert seen(running).polls > polls


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_stalled_loop_is_503_and_turning_again_is_200(
    processes: int, dsn: str, database: Connection, tmp_path: Path
) -> None:
    """A11: the page has a thread of its own; with several processes the parent notices their
    silence.
    """
    (tmp_path / "tasks.py").write_text(HOLDS_THE_LOOP)
    port = free_port()
    arguments = ("tasks:app", "--dsn", dsn, "--processes", str(processes))
    async with (
        worker_process(*arguments, cwd=tmp_path, HYBRID_RUNNER_HTTP_PORT=str(port)) as process,
        browser(port) as client,
    ):
        await client.until("/ready", 200)
        await database.execute(INSERT, "hold_the_loop")
        reason = await until_ill(client, "loop" if processes == 1 else "processes")
        assert ("its stack is in the log" if processes == 1 else "ill: ") in reason
        (tmp_path / "let_go").touch()
        await until_well(client)
        assert (await client.get("/ready")).status == 200
        assert await process.ends() == 0


DUE = (
    "UPDATE hybrid_runner.duties SET taken_at = clock_timestamp() - interval '1 day' WHERE name ="
    " 'growth'"
)


async def test_who_keeps_vacuum_from_cleaning_up_is_named_and_makes_nobody_ill(
    dsn: str, database: Connection
) -> None:
    """A11"""
    async with a_worker_with_a_page(dsn, heartbeat="200ms") as (running, client):
        await database.execute("ALTER TABLE hybrid_runner.jobs SET (autovacuum_enabled = off)")
        await database.execute(DUE)
        await until(lambda: running.status().vitals.pinned, patience=LONGEST)
        answer = await client.get("/health")
        [horizon] = [check for check in answer.body["checks"] if check["name"] == "horizon"]
        assert (answer.status, horizon["severity"], horizon["ok"]) == (200, "warning", True)
        assert "autovacuum is off for hybrid_runner.jobs" in horizon["reason"]
        await database.execute("ALTER TABLE hybrid_runner.jobs RESET (autovacuum_enabled)")
        await database.execute(DUE)
        await until(lambda: not running.status().vitals.pinned, patience=LONGEST)
