"""Workers that are killed once they were given a signal: real processes, SIGKILL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import ROOT, worker
from tests.support.waiting import until

APP = "tests.behaviour.signal_app:app"
INSERT = "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('hang-once', $1) RETURNING id"
WAITING = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for = 'k'"
RESULT = "SELECT result FROM hybrid_runner.archive WHERE id = $1 AND state = 'completed'"


@pytest.mark.parametrize("way", ["wake_on", "call"])
async def test_the_next_worker_is_given_the_same_signal(
    dsn: str, database: Connection, tmp_path: Path, way: str
) -> None:
    """B16: killed after it had taken it; another signal has come since."""
    file = tmp_path / "given"
    settings = {
        "HYBRID_RUNNER_DSN": dsn,
        "HYBRID_RUNNER_LEASE": "2",
        "HYBRID_RUNNER_LOG_LEVEL": "info",
    }
    async with worker(APP, cwd=ROOT, **settings) as first:
        await first.says("listening on")
        payload = json.dumps({"file": str(file), "key": "k", "way": way})
        job_id = await database.fetchval(INSERT, payload)
        await until(lambda: database.fetchval(WAITING))
        await database.execute("SELECT hybrid_runner.signal('k', '1')")
        await until(file.exists)
        first.process.kill()
        await first.process.wait()
    await database.execute("SELECT hybrid_runner.signal('k', '2')")
    async with worker(APP, cwd=ROOT, **settings) as second:
        await second.says("listening on")
        assert await until(lambda: database.fetchval(RESULT, job_id)) in ("1", 1)
