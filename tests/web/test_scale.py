"""GET /scale of a real worker, and the SQL that autoscalers can ask by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hybrid_runner import Runner, Worker
from hybrid_runner.model.upkeep import WorkerDemand
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.pages import scale
from hybrid_runner.web.server import PageServer
from tests.support.pages import Browser, browser
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working

INSERT = (
    "INSERT INTO hybrid_runner.jobs (queue, kind, run_at) "
    "SELECT $1, $2, now() + $3::int * interval '1 hour' FROM generate_series(1, $4::int)"
)
ASKING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hybrid-runner scale' AND"
    " datname = current_database()"
)


def an_app(dsn: str, **settings: Any) -> Runner:
    app = runner(dsn, **settings)

    @app.job("wait", queue="busy")
    async def wait(payload: Any) -> None:
        await asyncio.Event().wait()

    return app


@asynccontextmanager
async def served(app: Runner, **queues: int) -> AsyncIterator[tuple[Worker, Browser]]:
    port = free_port()
    jobs = PageDatabase(app.settings, lambda: app.dsn)
    async with (
        PageServer("127.0.0.1", port, database=jobs) as pages,
        browser(port) as client,
        working(app, queues) as worker,
    ):
        pages.show(worker.status)
        yield worker, client


async def test_it_follows_the_backlog(dsn: str, database: Connection) -> None:
    async with served(an_app(dsn, grace=0.1, heartbeat=0.2), busy=4) as (_, client):
        nothing = {"backlog": 0, "running": 0, "slots": 4, "workers": 1, "wanted": 0}
        assert await client.get("/scale") == (200, nothing | {"queues": {"busy": nothing}})
        await database.execute(INSERT, "busy", "wait", 0, 10)
        await database.execute(INSERT, "busy", "wait", 1, 100)
        await database.execute(INSERT, "nobodys", "unknown", 0, 401)
        answer = await until(
            lambda: client.get("/scale"),
            lambda seen: seen.body.get("running") == 4 and len(seen.body["queues"]) == 2,
        )
        assert answer.body == {
            "wanted": 3,
            "backlog": 407,
            "running": 4,
            "slots": 4,
            "workers": 1,
            "queues": {
                "busy": {"backlog": 6, "running": 4, "slots": 4, "workers": 1, "wanted": 3},
                # More workers like this one would not work on it.
                "nobodys": {"backlog": 401, "running": 0, "slots": 0, "workers": 0, "wanted": 0},
            },
        }
        assert (await client.get("/scale?queue=busy")).body["wanted"] == 3
        # Asked for by name: a worker would have 20 slots, as the settings say.
        assert (await client.get("/scale?queue=nobodys")).body["wanted"] == 21
        missing = await client.get("/scale?queue=none")
        assert (missing.status, missing.body["error"]) == (404, "there is no queue 'none'")


async def test_however_many_ask_it_is_one_question_and_one_connection(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def noted(*arguments: Any) -> list[WorkerDemand]:
        asked.append(arguments)
        return await ask(*arguments)

    ask = worker_calls.scale
    monkeypatch.setattr(scale, "_FRESH", 1000.0)
    monkeypatch.setattr(worker_calls, "scale", noted)
    async with served(an_app(dsn), busy=4) as (_, client):
        assert await database.fetchval(ASKING) == 0
        answers = await asyncio.gather(*(client.get("/scale") for _ in range(50)))
        assert {answer.status for answer in answers} == {200}
        assert await database.fetchval(ASKING) == 1
        assert len(asked) == 1


async def test_a_real_queue_is_answered_however_many_invented_ones_are_asked_for(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "_FRESH", 1000.0)
    async with served(an_app(dsn), busy=4) as (_, client):
        invented = [await client.get(f"/scale?queue=invented{n}") for n in range(150)]
        assert {answer.status for answer in invented} == {404}
        busy = await client.get("/scale?queue=busy")
        assert (busy.status, busy.body["slots"]) == (200, 4)


async def test_what_is_no_name_of_a_queue_is_not_asked_of_postgres(
    dsn: str, database: Connection
) -> None:
    async with served(an_app(dsn), busy=4) as (_, client):
        for text in ("%00", "~", "a" * 5000, "%ff", ""):
            assert (await client.get(f"/scale?queue={text}")).status == 404
        assert await database.fetchval(ASKING) == 0


async def test_a_connection_that_nobody_uses_is_closed(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "_LINGER", 0.2)
    monkeypatch.setattr(scale, "_FRESH", 0.0)  # the second answer is not the first once more
    async with served(an_app(dsn), busy=4) as (_, client):
        assert (await client.get("/scale")).status == 200
        await until_fetched(database, ASKING, 0)
        assert (await client.get("/scale")).status == 200


async def test_while_postgres_is_away_it_says_so_and_metrics_are_served(dsn: str) -> None:
    async with Proxy(dsn) as proxy, served(an_app(proxy.dsn), busy=4) as (_, client):
        assert (await client.get("/scale")).status == 200
        await proxy.cut()
        ill = await client.until("/scale", 503)
        assert ill.body["error"].startswith("the queues cannot be counted: ")
        await proxy.mend()
        assert (await client.until("/scale", 200)).body["slots"] == 4


async def test_before_the_embedded_postgres_is_started_it_is_503() -> None:
    port, app = free_port(), Runner()
    async with (
        PageServer("127.0.0.1", port, database=PageDatabase(app.settings, lambda: None)),
        browser(port) as client,
    ):
        assert await client.get("/scale") == (
            503,
            {"error": "the queues cannot be counted: the embedded Postgres is not started yet"},
        )


async def test_a_paused_queue_wants_no_more_than_it_runs(dsn: str, database: Connection) -> None:
    async with served(an_app(dsn, slots=2), busy=2):
        await database.execute("SELECT hybrid_runner.pause('busy')")
        await database.execute(INSERT, "busy", "wait", 0, 100)
        [row] = await database.fetch("SELECT backlog, wanted FROM hybrid_runner.scale('busy')")
        assert tuple(row) == (100, 0)


async def test_a_reader_may_ask_and_a_producer_may_not(dsn: str, database: Connection) -> None:
    await database.execute(INSERT, "busy", "wait", 0, 201)
    await database.execute("SET ROLE hybrid_runner_reader")
    assert (
        await database.fetchval("SELECT coalesce(max(wanted), 0) FROM hybrid_runner.scale()") == 2
    )
    await database.execute("RESET ROLE")
    await database.execute("SET ROLE hybrid_runner_producer")
    with pytest.raises(Exception, match="permission denied"):
        await database.fetchval("SELECT max(wanted) FROM hybrid_runner.scale()")
