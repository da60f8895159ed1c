"""The pages of a real worker on a real database."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_runner import Runner, __version__
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.server import PageServer
from tests.cli.running import NOBODY, worker
from tests.support import inside
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

EXPENSIVE = (
    "aiohttp",
    "opentelemetry.sdk",
    "opentelemetry.exporter",
    "requests",
    "google.protobuf",
)
CHECKS = (
    "claiming",
    "loops",
    "polling",
    "listener",
    "heartbeat",
    "loop",
    "missed_rings",
    "settling",
    "horizon",
    "kinds",
    "sources",
    "postgres",
)
A10 = {
    "looks_per_minute",
    "jobs_found_per_look",
    "claim_success_rate",
    "claim_latency_ms",
    "longest_claim_ms",
}
TASKS = """
from hybrid_runner import Runner
from tests.support.waiting import until_fetched

app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def with_a_handler(app: Runner) -> Runner:
    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        pass

    return app


async def test_health_shows_the_metrics_of_the_worker(dsn: str, database: Connection) -> None:
    """A10 A11 F6"""
    app = with_a_handler(runner(dsn))
    port = free_port()
    async with PageServer("127.0.0.1", port) as pages, browser(port) as client:
        assert await client.get("/health") == (
            200,
            {
                "healthy": True,
                "phase": "starting",
                "version": __version__,
                "checks": [],
                "worker": None,
            },
        )
        async with working(app) as running:
            pages.show(running.status)
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('note', '{}')"
            )
            await running.settled(1)
            status, body = await client.get("/health")
        assert (status, body["healthy"], body["phase"], body["version"]) == (
            200,
            True,
            "running",
            __version__,
        )
        assert [
            (check["name"], check["ok"], bool(check["reason"])) for check in body["checks"]
        ] == [(name, True, True) for name in CHECKS]
        assert {check["name"] for check in body["checks"] if check["severity"] != "ok"} <= {
            "loop"
        }  # a busy machine is late
        shown = body["worker"]
        assert (shown["id"], shown["hearing"], shown["settled"], shown["slots"]) == (
            running.id,
            True,
            {"completed": 1},
            20,
        )
        assert shown["found"]["ring"] == 1
        assert shown["queues"]["default"]["looks"] == shown["looks"] >= 2
        assert set(shown["last_minute"]) == A10
        assert shown["last_minute"]["looks_per_minute"] == shown["looks"]
        assert shown["last_minute"]["jobs_found_per_look"] == round(1 / shown["looks"], 3)
        assert shown["last_minute"]["claim_success_rate"] == 1
        assert (
            0 < shown["last_minute"]["claim_latency_ms"] <= shown["last_minute"]["longest_claim_ms"]
        )
        assert (shown["consecutive_errors"], shown["missed"]) == (0, 0)


async def test_a_lost_database_is_503_after_five_errors_and_200_when_it_is_back(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A9 A11"""
    inside.make_outages_short(monkeypatch)
    port = free_port()
    async with Proxy(dsn) as proxy:
        app = with_a_handler(runner(proxy.dsn, poll_base="20ms", poll_cap="20ms"))
        async with (
            PageServer("127.0.0.1", port) as pages,
            browser(port) as client,
            working(app) as running,
        ):
            pages.show(running.status)
            await proxy.cut()
            ill = await client.until("/health", 503)
            assert ill.body["healthy"] is False
            [claiming] = [check for check in ill.body["checks"] if not check["ok"]]
            assert claiming["name"] == "claiming"
            assert "times in default" in claiming["reason"]
            assert ill.body["worker"]["consecutive_errors"] >= 5
            assert (await client.get("/ready")).status == 503
            await proxy.mend()
            well = await client.until("/health", 200)
            assert well.body["worker"]["consecutive_errors"] == 0


@pytest.mark.parametrize(
    "name", ["settler", "claimer of default", "poller of default", "heartbeat"]
)
async def test_a_background_loop_that_ended_is_503(name: str, dsn: str) -> None:
    """A11"""
    app = with_a_handler(runner(dsn))
    port = free_port()
    async with (
        PageServer("127.0.0.1", port) as pages,
        browser(port) as client,
        working(app) as running,
    ):
        pages.show(running.status)
        if name == "heartbeat":  # has a thread
            await inside.stop_beating(running)
        else:
            inside.loop_of(running, name).cancel()
        ill = await client.until("/health", 503)
        said = "only a restart brings back" if name == "heartbeat" else "about to be started again"
        assert [check["reason"] for check in ill.body["checks"] if not check["ok"]] == [
            f"ended, and {said}: {name}"
        ]


async def test_ready_drops_first_when_a_worker_stops_while_a_job_still_runs(dsn: str) -> None:
    """A11 A13: the whole of run_worker, and its signal."""
    port = free_port()
    app = runner(dsn, http_port=port, grace="5m")  # it ends when the test has seen it
    started, may_end = asyncio.Event(), asyncio.Event()

    @app.job("long")
    async def long(payload: dict[str, int]) -> None:
        started.set()
        await may_end.wait()

    async with browser(port) as client:
        work = asyncio.create_task(app.run_worker())
        assert (await client.until("/ready", 200)).body == {"ready": True, "phase": "running"}
        await app.enqueue(long, {})
        await started.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert (await client.until("/ready", 503)).body == {"ready": False, "phase": "stopping"}
        health = await client.get("/health")
        assert (health.status, health.body["phase"], health.body["worker"]["running"]) == (
            200,
            "stopping",
            1,
        )
        may_end.set()
        await work


async def test_not_ready_while_the_server_is_waited_for(folder: Path) -> None:
    port = free_port()
    async with (
        worker(
            "tasks:app", "--dsn", NOBODY, cwd=folder, HYBRID_RUNNER_HTTP_PORT=str(port)
        ) as process,
        browser(port) as client,
    ):
        await process.says("trying again")
        assert await client.get("/ready") == (503, {"ready": False, "phase": "starting"})
        assert (await client.get("/health")).status == 200
        assert await process.ends() == 0


async def test_a_port_in_use_is_one_warning_and_the_worker_works(
    dsn: str, database: Connection, folder: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with worker(
            "tasks:app", "--dsn", dsn, cwd=folder, HYBRID_RUNNER_HTTP_PORT=str(port)
        ) as process:
            await process.says("listening on default")
            job = await database.fetchval(
                "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('note', '{}') RETURNING id"
            )
            await until_fetched(
                database, "SELECT count(*) FROM hybrid_runner.archive WHERE id = $1", 1, job
            )
            assert await process.ends() == 0
    [warning] = [line["message"] for line in process.lines if line["level"] == "warning"]
    assert f"port {port}" in warning
    assert "HYBRID_RUNNER_HTTP_PORT" in warning


async def test_port_0_serves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hybrid_runner.web"):
        async with PageServer("127.0.0.1", 0) as pages:
            pages.show(lambda: pytest.fail("nobody may ask"))
    assert not caplog.records


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/health/more", 404),
        ("POST", "/health", 405),
        ("DELETE", "/ready", 405),
    ],
)
async def test_what_is_not_there_is_json_too(method: str, path: str, status: int) -> None:
    port = free_port()
    async with PageServer("127.0.0.1", port), browser(port) as client:
        answer = await client.get(path, method)
    assert answer.status == status
    assert answer.body["pages"] == ["/health", "/ready", "/metrics"]


def test_neither_a_web_server_nor_an_exporter_is_imported_by_the_package() -> None:
    """Clients of the package pay for what they use."""
    code = (
        f"import sys, hybrid_runner; print([name for name in {EXPENSIVE} if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
