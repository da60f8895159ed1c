"""Postgres takes no notification, as when its queue is full: the worker lives, claims, and finds
jobs by polling.
"""

from __future__ import annotations

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.logins import Login, Logins
from tests.support.waiting import differs_from, until
from tests.support.working import runner, working

BEATEN = "SELECT heartbeat_at FROM hybrid_runner.workers"


async def test_heartbeats_go_on_and_jobs_are_found_by_polling(
    login: Logins, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app = runner(login(Login.WORKER), heartbeat="100ms", poll_base="100ms", poll_cap="200ms")

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        pass

    async with working(app) as worker:
        await database.execute("REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC")
        try:
            await until(lambda: not worker.status().hearing)
            beaten = await database.fetchval(BEATEN)
            for _ in range(3):
                beaten = await until(lambda: database.fetchval(BEATEN), differs_from(beaten))
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')")
            await worker.settled(1)
        finally:
            await database.execute("GRANT EXECUTE ON FUNCTION pg_notify TO PUBLIC")
        await until(lambda: worker.status().hearing)
    said = [line for line in caplog.messages if "notifications cannot be sent" in line]
    assert len(said) == 1
