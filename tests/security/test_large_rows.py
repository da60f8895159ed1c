"""A row is bounded by what it becomes when it is read, not by what it takes in storage."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner.errors import EnqueueError
from hybrid_runner.jsontext import LARGEST
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.failures import translate
from tests.support.jobs import enqueue
from tests.support.logins import Login, Logins

NUMBERS = "(SELECT jsonb_agg(1e131071) FROM generate_series(1, {}))"
ROADS = {
    "many digits in few bytes": NUMBERS.format(9),
    "letters that are printed as six": r"jsonb_build_object('a', repeat(E'\x01', 200000))",
    "compressed in another table": "(SELECT p FROM large)",
    "compressed to less than 100 bytes": "(SELECT p FROM tiny)",
}
COLUMNS = ("payload", "data")


@pytest.fixture(params=[*ROADS.values()], ids=[*ROADS])
def value(request: pytest.FixtureRequest) -> str:
    """An expression for a value that is small in storage."""
    made: str = request.param
    return made


async def prepare(connection: Connection) -> None:
    """Make tables with values that are compressed."""
    await connection.execute(
        "CREATE TEMP TABLE large AS SELECT jsonb_build_object('a', repeat('x', 6000000)) AS p"
    )
    await connection.execute("CREATE TEMP TABLE tiny (p jsonb)")
    await connection.execute(f"INSERT INTO tiny SELECT {NUMBERS.format(200)}")
    assert await connection.fetchval("SELECT pg_column_size(p) FROM tiny") < 100


@pytest.fixture
async def producer(login: Logins) -> AsyncIterator[Connection]:
    """A session of a producer who has prepared a value in a table."""
    connection = await connect(login(Login.PRODUCER))
    await prepare(connection)
    yield connection
    await connection.close()


async def assert_refused(connection: Connection, statement: str) -> None:
    """With a reason that names the column, unless Postgres itself cannot print the value."""
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await connection.execute(statement)
    said = str(translate(refusal.value))
    assert "is at most 1 mib as text" in said or "string buffer exceeds" in said, said
    assert "\n" not in said


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_producer_cannot_insert_what_becomes_large(
    producer: Connection, column: str, value: str, database: Connection
) -> None:
    await assert_refused(
        producer, f"INSERT INTO hybrid_runner.jobs (kind, {column}) VALUES ('echo', {value})"
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_what_postgres_itself_cannot_print_is_refused_when_it_is_inserted(
    producer: Connection, database: Connection
) -> None:
    await assert_refused(
        producer,
        f"INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('echo', {NUMBERS.format(9000)})",
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_producer_cannot_enqueue_it_by_a_function(
    producer: Connection, column: str, value: str
) -> None:
    for name in ("enqueue", "enqueue_job"):
        await assert_refused(producer, f"SELECT hybrid_runner.{name}('echo', {column} => {value})")


@pytest.mark.parametrize("column", COLUMNS)
async def test_it_cannot_replace_a_queued_job(
    producer: Connection, column: str, value: str, database: Connection
) -> None:
    await enqueue(database, key="k")
    await assert_refused(
        producer,
        "SELECT hybrid_runner.enqueue_job('echo', key => 'k', on_conflict => 'replace',"
        f" {column} => {value})",
    )


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_worker_cannot_amend_a_job_to_it(
    login: Logins, column: str, value: str, database: Connection
) -> None:
    job = await enqueue(database)
    worker = await connect(login(Login.WORKER))
    await prepare(worker)
    await assert_refused(worker, f"SELECT hybrid_runner.amend({job}, 1, {column} => {value})")
    await worker.close()


@pytest.mark.parametrize("kind", ["alike", "different", "keyed"])
async def test_a_bulk_with_one_such_job_is_refused(kind: str, database: Connection) -> None:
    """Python sees 200 KB, Postgres 12 MB."""
    large = NewJob("work", payload="[" + ",".join(["1e300"] * 40_000) + "]")
    assert len(large.payload) < LARGEST
    others = {
        "alike": [NewJob("work")],
        "different": [NewJob("other", priority=1)],
        "keyed": [NewJob("work", key="k")],
    }
    with pytest.raises(EnqueueError, match="payload is at most 1 mib as text"):
        await client_calls.enqueue_many(database, [*others[kind], large], "exists")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
