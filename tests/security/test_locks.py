"""Locks that strangers hold: of the advisory ones nothing of ours waits for any, and who holds one
that it does wait for is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.errors import DatabaseError
from hybrid_runner.storage import client_calls, worker_calls
from hybrid_runner.storage import migrations as migrating
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.installed import digest, record
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.storage.queries import Migration, migrations
from tests.support.jobs import ended
from tests.support.logins import Login, Logins
from tests.support.server import QUICK, embedded
from tests.support.waiting import until

ADVISORY = """
SELECT pg_advisory_lock(7220483551), pg_advisory_lock(hashtextextended('hybrid_runner.prune', 0)),
    pg_advisory_lock(hashtextextended('hybrid_runner.make_archive_partitions', 0))
"""
"""Numbers that could be read from the code once."""
LONG = timedelta(hours=1)
ANOTHER_TEXT = record().replace(digest(), "another")
"""After this statement `migrate` has something to do."""


@asynccontextmanager
async def holding(dsn: str, *statements: str) -> AsyncIterator[asyncpg.Connection]:
    """A session that runs these in a transaction, and goes on with it."""
    connection = await asyncpg.connect(dsn, server_settings={"application_name": "a stranger"})
    try:
        await connection.execute("BEGIN")
        for statement in statements:
            await connection.execute(statement)
        yield connection
    finally:
        await connection.close()


async def test_advisory_locks_of_a_login_without_rights_hold_up_nothing(
    login: Logins, database: Connection
) -> None:
    job = await ended(database)
    await database.execute(ANOTHER_TEXT)
    async with holding(login(Login.NOBODY), ADVISORY):
        async with asyncio.timeout(120):
            assert await migrate(database) == []
            assert not any(one.prevented for one in await worker_calls.prune(database, 20))
            await worker_calls.make_archive_partitions(database, 9)
            assert await client_calls.retry_job(database, job) == "queued"


@pytest.mark.parametrize("who", Login)
async def test_no_login_can_lock_what_these_lock(login: Logins, who: Login) -> None:
    for statement in (
        "SELECT FROM hybrid_runner.locks FOR UPDATE",
        "SELECT FROM hybrid_runner.locks FOR KEY SHARE",
        "LOCK TABLE hybrid_runner.locks IN SHARE MODE",
        "LOCK TABLE hybrid_runner.migrations IN SHARE MODE",
        "LOCK TABLE hybrid_runner.migrations IN ROW EXCLUSIVE MODE",
    ):
        connection = await asyncpg.connect(login(who))
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute(statement)
        await connection.close()


async def test_who_keeps_prune_from_its_turn_is_named_after_three_of_them(
    dsn: str, login: Logins, database: Connection
) -> None:
    job = await ended(database)
    async with holding(login(Login.WORKER), f"SELECT hybrid_runner.retry({job})") as holder:
        pid = holder.get_server_pid()
        for turn in range(4):
            found = await worker_calls.find_growth(database, LONG)
            causes = [cause for cause in found if cause.name == "prune"]
            assert bool(causes) == (turn == 3)
            [one] = await worker_calls.prune(database, 20)
            assert one.what == "busy"
        [cause] = causes
        assert "3 times in a row" in cause.complaint
        assert f"session {pid} ({Login.WORKER.role}, a stranger, in a transaction since 2" in (
            cause.complaint
        )
    await worker_calls.prune(database, 20)
    assert await worker_calls.find_growth(database, LONG) == []


LATER = Migration(
    migrations()[-1].version + 1, "later", "ALTER TABLE hybrid_runner.jobs ADD COLUMN later text"
)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Migration:
    """A migration that needs the table of jobs for itself."""
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), LATER))
    return LATER


INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')"


async def test_migrate_lets_others_insert_while_a_producers_transaction_is_open_and_names_it(
    dsn: str,
    login: Logins,
    database: Connection,
    later: Migration,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with holding(login(Login.PRODUCER), INSERT) as holder:
        migration = asyncio.create_task(migrate(database, lambda: connect(dsn)))
        try:
            async with holding(login(Login.OTHER_PRODUCER)) as another:
                # It waits for as long as one try does, and there are several.
                await until(lambda: "waiting for a lock that" in caplog.text)
                await another.execute("SET lock_timeout = '50s'")
                await another.execute(INSERT)
                await another.execute("COMMIT")
            assert not migration.done()
            assert (
                f"waiting for a lock that session {holder.get_server_pid()}"
                f" ({Login.PRODUCER.role}, a stranger, in a transaction for " in caplog.text
            )
            assert f"pg_terminate_backend({holder.get_server_pid()})" in caplog.text
            await holder.execute("COMMIT")
            assert await migration == [later]
        finally:
            migration.cancel()


async def test_migrate_gives_up_in_one_line_that_names_the_session(
    dsn: str, login: Logins, database: Connection, later: Migration
) -> None:
    async with holding(login(Login.PRODUCER), INSERT) as holder:
        with pytest.raises(DatabaseError) as refusal:
            await migrate(database, lambda: connect(dsn), longest=3)
        said = str(refusal.value)
        assert said.startswith("gave up after 3 s, since session ")
        assert f"SELECT pg_terminate_backend({holder.get_server_pid()}), and migrate again" in said
        assert "\n" not in said


async def test_what_a_prepared_transaction_holds_is_said_to_be_its(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with embedded(QUICK | {"max_prepared_transactions": "5"}) as postgres:
        connection = await connect(postgres.dsn)
        await migrate(connection)
        await connection.execute("BEGIN; LOCK TABLE hybrid_runner.jobs IN ACCESS SHARE MODE")
        await connection.execute("PREPARE TRANSACTION 'forgotten'")
        monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), LATER))
        with pytest.raises(DatabaseError, match=r"a prepared transaction .*: COMMIT PREPARED or"):
            await migrate(connection, lambda: connect(postgres.dsn), longest=3)
        await connection.execute("ROLLBACK PREPARED 'forgotten'")
        await connection.close()
