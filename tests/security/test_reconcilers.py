"""Reconcilers by a worker that has the rights of its role alone."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from tests.support.logins import Login, Logins
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working

RUNS = "CREATE TABLE public.runs AS SELECT 'r-' || n AS run FROM generate_series(1, 3) AS n"


def an_app(dsn: str) -> Runner:
    app = runner(dsn, heartbeat=0.2)

    @app.job("poll")
    async def poll(_: dict[str, Any]) -> None: ...

    @app.reconcile("1h", kind=poll, key="poll-{run}")
    def lost_polls() -> str:
        return "SELECT r.run FROM public.runs AS r"

    return app


async def test_a_worker_restores_what_it_may_read(login: Logins, database: Connection) -> None:
    """B12"""
    await database.execute(RUNS)
    await database.execute("GRANT SELECT ON public.runs TO hybrid_runner_worker")
    async with working(an_app(login(Login.WORKER))) as worker:
        await worker.settled(3)
    await until_fetched(
        database, "SELECT count(*) FROM hybrid_runner.archive WHERE kind = 'poll'", 3
    )


async def test_a_table_that_it_may_not_read_is_named_in_one_line_and_stops_nothing(
    login: Logins, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B12"""
    await database.execute(RUNS)
    app = an_app(login(Login.WORKER))
    async with working(app) as worker:
        await until(lambda: [line for line in caplog.messages if "reconcile" in line])
        await app.enqueue("poll", {})
        await worker.settled(1)
    [line] = [line for line in caplog.messages if "reconcile" in line]
    assert line.startswith("duty reconcile:poll:lost_polls failed: ")
    assert "permission denied for table runs" in line
    assert line.endswith("; again at its next turn")
    assert "\n" not in line


async def test_a_table_that_somebody_made_under_our_names_is_not_asked(
    login: Logins, database: Connection
) -> None:
    """B12: the query of an application that forgets the schema finds nothing of anybody's."""
    await database.execute(RUNS)
    await database.execute("GRANT SELECT ON public.runs TO hybrid_runner_worker")
    app = runner(login(Login.WORKER), heartbeat=0.2)

    @app.job("poll")
    async def poll(_: dict[str, Any]) -> None: ...

    @app.reconcile("1h", kind=poll, key="poll-{run}")
    def lost_polls() -> str:
        return "SELECT r.run FROM runs AS r"

    async with working(app):
        done = "SELECT taken_at > '-infinity' FROM hybrid_runner.duties WHERE name LIKE 'reco%'"
        await until_fetched(database, done, value=True)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
