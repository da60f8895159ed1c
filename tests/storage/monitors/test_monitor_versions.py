"""Every supported PostgreSQL: installing, a round, upkeep, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import asyncpg
import pytest

from hybrid_runner.embedded.binaries import BINARIES_VARIABLE
from hybrid_runner.model.monitors import ErrorEntry, Event, Item, Latency, Subscription
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.storage.monitor_schema import PART, install_monitors
from hybrid_runner.storage.queries import functions, query, sql_folder
from tests.monitors.refusals import REFUSALS
from tests.support import versions
from tests.support.monitored import add, good, play, stored
from tests.support.outside import missing
from tests.support.server import embedded
from tools.roles import make_groups

QUERIES = [path.stem for path in sorted((sql_folder() / PART / "queries").glob("*.sql"))]
ADD = "INSERT INTO hybrid_monitors.services (name, url) VALUES ('a', $1)"


@pytest.fixture(scope="module", params=versions.MAJORS)
def version_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with monitors on that version, shared by the tests here."""
    programs = versions.find().get(request.param)
    if programs is None:
        missing(versions.why_absent(request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BINARIES_VARIABLE, str(programs))
        with embedded() as postgres:
            asyncio.run(_install(postgres.dsn))
            yield postgres.dsn


async def _install(dsn: str) -> None:
    connection = await connect(dsn)
    await make_groups(connection)
    await migrate(connection)
    await install_monitors(connection)
    assert await install_monitors(connection) == []
    await connection.close()


@pytest.fixture
async def on_version(version_dsn: str) -> AsyncIterator[Connection]:
    """A connection to it; whatever a test does is undone."""
    connection = await connect(version_dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def test_monitors_work_on_every_version(on_version: Connection) -> None:
    for name in QUERIES:
        await on_version.prepare(query(name))
    for _, sql in functions(PART):
        await on_version.execute(sql)
    service_id = await add(on_version, "a", "http://A.internal/")
    await service_calls.update_service(on_version, "a", {"labels": {"team": "x"}})
    played = await play(on_version)
    taken = await played.take()
    [service] = taken.services
    decision = replace(
        good(service, taken.now, warnings=("one",)),
        dependencies=(stored(Item("db", healthy=True), service_id, status_changed=True),),
        errors=(ErrorEntry(service_id, "db", {"a": 1}, "one"),),
        latencies=(Latency(service_id, "db", 5),),
        events=(Event("status:change", service_id, {"a": 1}),),
    )
    wants = Subscription("status:change", "monitors.on:status:change:f", "monitors-events")
    recorded = await played.record([decision], subscriptions=[wants])
    assert (recorded.event_ids, recorded.status_changes) == ((1,), 1)
    await on_version.execute("UPDATE hybrid_monitors.latencies SET at = at - interval '2 h'")
    await monitor_calls.ask_poll(on_version, "a")
    assert [each.is_asked for each in (await played.take()).services] == [True]
    assert (await monitor_calls.upkeep(on_version)).hours_rolled_up in (1, 2)
    await service_calls.remove_service(on_version, "a")
    assert len((await played.take()).stopped) == 1


async def test_every_version_refuses_in_the_same_words(on_version: Connection) -> None:
    for column, value, line in REFUSALS:
        if column == "url":
            with pytest.raises(asyncpg.CheckViolationError) as raised:
                async with on_version.transaction():
                    await on_version.execute(ADD, value)
            assert str(raised.value) == f"services.{line}"
