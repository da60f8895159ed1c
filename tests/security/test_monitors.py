"""What workers of monitors need, and what producers cannot take from them."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.errors import EnqueueError
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.cli.running import worker
from tests.monitors.polling import POLLED, polling, store
from tests.support.logins import Login, Logins
from tests.support.waiting import until_fetched
from tests.support.working import runner

STANDALONE = "hybrid_runner.monitors.standalone:app"


@pytest.fixture
def login(monitors_dsn: str, _logins: None) -> Logins:
    """The DSN of the database with monitors as another login."""
    return Logins(monitors_dsn)


async def test_standalone_monitors_poll_as_a_login_of_workers(
    login: Logins, monitored: Connection, tmp_path: Path
) -> None:
    given = {"HYBRID_RUNNER_DSN": login(Login.WORKER), "HYBRID_RUNNER_HTTP_PORT": "0"}
    fakes = FakeServices([FakeService("orders")])
    async with fakes, worker(STANDALONE, cwd=tmp_path, **given) as process:
        await process.says("listening on")
        await store(monitored, fakes, "orders")
        await until_fetched(monitored, POLLED, 1)


KEYS = ("monitors:127.0.0.1", ">monitors:127.0.0.1", "monitors.upkeep")
STATEMENTS = (
    "INSERT INTO hybrid_runner.jobs (kind, key, run_at) VALUES ($1, $2, 'infinity')",
    "SELECT hybrid_runner.enqueue($1, key => $2)",
    *(
        f"SELECT hybrid_runner.enqueue_job($1, '[1]', key => $2, on_conflict => '{each}')"
        for each in ("error", "replace", "follow", "collect")
    ),
    "SELECT hybrid_runner.enqueue_job($1, key => $2, unique_for => '1 hour')",
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_producer_is_refused_keys_of_monitors(
    login: Logins, statement: str, key: str
) -> None:
    """Also one that would be given the key later, which functions refuse by themselves."""
    producer = await connect(login(Login.PRODUCER))
    refusals = (asyncpg.CheckViolationError, asyncpg.InvalidParameterValueError)
    for kind in ("work", "monitors.round"):
        with pytest.raises(
            refusals, match=r"begins_with_monitors_is_for_workers|must not start with"
        ):
            await producer.execute(statement, kind, key)
    await producer.close()


async def test_producer_is_told_in_one_line_whose_keys_of_monitors_are(login: Logins) -> None:
    line = "the job was refused: key that begins with monitors is for workers alone"
    async with runner(login(Login.PRODUCER), Registry()) as app:
        with pytest.raises(EnqueueError, match=f"^{line}$"):
            await app.enqueue("work", key="monitors:a.internal")
        with pytest.raises(EnqueueError, match=line):
            await app.enqueue_many("work", [{}], key=lambda _: "monitors:a.internal")


async def test_host_is_polled_whose_key_a_producer_has_asked_for(
    login: Logins, monitored: Connection
) -> None:
    producer = await connect(login(Login.PRODUCER))
    fakes = FakeServices([FakeService("orders")])
    async with fakes:
        await store(monitored, fakes, "orders")
        await monitored.execute("DELETE FROM hybrid_runner.jobs")
        host = await monitored.fetchval("SELECT host FROM hybrid_monitors.services")
        for key in (f"monitors:{host}", f">monitors:{host}"):
            with pytest.raises(asyncpg.CheckViolationError):
                await producer.execute(
                    "INSERT INTO hybrid_runner.jobs (kind, queue, key, run_at)"
                    " VALUES ('x', 'nowhere', $1, 'infinity')",
                    key,
                )
        async with polling(login(Login.WORKER)):
            await until_fetched(monitored, POLLED, 1)
    await producer.close()
