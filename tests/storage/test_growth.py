"""Warnings of what lets tables grow, from real sessions, slots and prepared transactions."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from hybrid_runner.embedded import use_embedded
from hybrid_runner.embedded.binaries import find_binaries
from hybrid_runner.model.upkeep import BloatCause
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.upkeep.duties.growth import GrowthWatch
from tests.support.archive import aged
from tests.support.jobs import enqueue
from tests.support.server import QUICK
from tests.support.waiting import until, until_fetched

Another = Callable[[], Awaitable[Connection]]
AT_ONCE = timedelta(0)


async def found(connection: Connection, longer_than: timedelta = AT_ONCE) -> list[str]:
    return [complaint for _, complaint in await worker_calls.find_growth(connection, longer_than)]


async def test_a_healthy_database_is_no_news(database: Connection) -> None:
    await worker_calls.find_growth(database, AT_ONCE)
    await enqueue(database)
    assert await worker_calls.find_growth(database, AT_ONCE) == []


async def test_a_session_that_is_idle_in_a_transaction_is_named(
    database: Connection, another: Another
) -> None:
    session = await another()
    await session.execute("SET application_name = 'nightly report'")
    pid = session.get_server_pid()
    async with session.transaction(isolation="repeatable_read"):
        await session.execute("SELECT")
        [(name, complaint)] = await worker_calls.find_growth(database, AT_ONCE)
        assert name == f"session {pid}"
        assert complaint.startswith(
            f"session {pid} (nightly report, idle in transaction) has been in one transaction for "
        )
        assert complaint.endswith(
            f"keeps vacuum from cleaning up: end it, or SELECT pg_terminate_backend({pid})"
        )
        assert await found(database, timedelta(minutes=10)) == []
    assert await found(database) == []


async def test_of_several_sessions_the_oldest_is_named(
    database: Connection, another: Another
) -> None:
    older, newer, reader = await another(), await another(), await another()
    await reader.execute("BEGIN; SELECT")  # between two statements it holds nothing back
    await older.execute("BEGIN")
    await enqueue(older)
    await newer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
    assert [name for name, _ in await worker_calls.find_growth(database, AT_ONCE)] == [
        f"session {older.get_server_pid()}"
    ]
    await older.execute("ROLLBACK")
    assert [name for name, _ in await worker_calls.find_growth(database, AT_ONCE)] == [
        f"session {newer.get_server_pid()}"
    ]


async def test_a_worker_sees_the_sessions_of_others_too(
    database: Connection, another: Another
) -> None:
    session = await another()
    await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
    await database.execute("SET SESSION AUTHORIZATION hybrid_runner_worker")
    assert len(await found(database)) == 1


async def test_autovacuum_that_is_off_for_the_jobs_is_named(database: Connection) -> None:
    await database.execute("ALTER TABLE hybrid_runner.jobs SET (autovacuum_enabled = off)")
    assert await found(database) == [
        (
            "autovacuum is off for hybrid_runner.jobs: ALTER TABLE hybrid_runner.jobs RESET"
            " (autovacuum_enabled)"
        )
    ]
    await database.execute("ALTER TABLE hybrid_runner.jobs SET (autovacuum_enabled = true)")
    assert await found(database) == []


@pytest.mark.usefixtures("within_an_hour")
async def test_partitions_that_were_not_made_and_rows_that_found_none_are_named(
    database: Connection,
) -> None:
    rows = await database.fetch(
        "SELECT half, partition FROM hybrid_runner.archive_partitions WHERE NOT is_default ORDER BY"
        " upper DESC"
    )
    for half, partition in [(row[0], row[1]) for row in rows]:
        left = [row[1] for row in rows if row[0] == half]
        if left.index(partition) < len(left) - 1:  # all but the first
            await database.execute(f"DROP TABLE hybrid_runner.{partition}")
    await aged(database, 500)
    said = await found(database)
    assert len(said) == 3
    assert "hybrid_runner.archive_completed has no partition from " in said[0]
    assert "hybrid_runner.archive_failed has no partition from " in said[1]
    assert said[2].startswith("hybrid_runner.archive_completed_default has rows: ")
    await worker_calls.make_archive_partitions(database, 7)
    assert [name for name, _ in await worker_calls.find_growth(database, AT_ONCE)] == [
        "strays archive_completed_default"
    ]


async def test_the_same_cause_is_warned_of_once_an_hour(
    database: Connection, another: Another, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    growth = GrowthWatch(AT_ONCE, lambda: now)

    async def lines() -> int:
        caplog.clear()
        await growth.run(database)
        return len([record for record in caplog.records if record.levelname == "WARNING"])

    await (await another()).execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
    assert await lines() == 1
    now = 3599
    assert await lines() == 0
    await database.execute("ALTER TABLE hybrid_runner.jobs SET (autovacuum_enabled = off)")
    assert await lines() == 1
    now = 3600
    assert await lines() == 1
    assert "\n" not in caplog.text.strip()


@pytest.fixture
async def own_server() -> AsyncIterator[Connection]:
    """A server whose settings may be changed, with what slots and prepared transactions need."""
    settings = QUICK | {"wal_level": "logical", "max_prepared_transactions": "5"}
    with tempfile.TemporaryDirectory(
        prefix="hybrid-runner-tests-", ignore_cleanup_errors=True
    ) as folder:
        postgres = use_embedded(Path(folder) / "postgres", settings=settings)
        connection = await connect(postgres.dsn)
        await migrate(connection)
        yield connection
        await connection.close()
        postgres.stop()


async def causes(connection: Connection, longer_than: timedelta = AT_ONCE) -> list[BloatCause]:
    return await worker_calls.find_growth(connection, longer_than)


async def test_a_replication_slot_that_nobody_reads_is_named(own_server: Connection) -> None:
    assert await causes(own_server) == []
    await own_server.execute("SELECT pg_create_logical_replication_slot('warehouse', 'pgoutput')")
    await enqueue(own_server)
    assert await causes(own_server) == []  # it is younger than what is known
    await enqueue(own_server)
    [(name, complaint)] = await causes(own_server)
    assert name == "slot warehouse"
    assert (
        complaint
        == "replication slot warehouse (nobody uses it) has kept vacuum from cleaning up for longer"
        " than 00:00:00: let its reader catch up, or drop it"
    )
    assert await causes(own_server, timedelta(minutes=10)) == []
    await own_server.execute("SELECT pg_drop_replication_slot('warehouse')")
    assert await causes(own_server) == []


async def test_a_prepared_transaction_and_autovacuum_off_are_named(own_server: Connection) -> None:
    await own_server.execute("BEGIN; SELECT hybrid_runner.keep('failed', '2 days')")
    await own_server.execute("PREPARE TRANSACTION 'forgotten'")
    [(name, complaint)] = await causes(own_server)
    assert name == "prepared forgotten"
    assert complaint.startswith("prepared transaction 'forgotten' of ")
    assert await causes(own_server, timedelta(minutes=10)) == []
    await own_server.execute("ROLLBACK PREPARED 'forgotten'")
    await own_server.execute("ALTER SYSTEM SET autovacuum = off")
    await own_server.execute("SELECT pg_reload_conf()")
    await until_fetched(own_server, "SHOW autovacuum", "off")
    assert [name for name, _ in await causes(own_server)] == ["setting autovacuum"]


async def test_a_standby_that_reads_for_long_is_named(
    own_server: Connection, tmp_path: Path
) -> None:
    sockets, port = [
        await own_server.fetchval(f"SHOW {name}") for name in ("unix_socket_directories", "port")
    ]
    place = f"host={sockets} port={port} user={await own_server.fetchval('SELECT current_user')}"
    copying = [
        str(find_binaries().directory / "pg_basebackup"),
        "-R",
        "--checkpoint=fast",
        "-D",
        str(tmp_path / "data"),
        "-d",
        place,
    ]
    await asyncio.to_thread(lambda: subprocess.run(copying, check=True, capture_output=True))
    feedback = {
        "hot_standby_feedback": "on",
        "wal_receiver_status_interval": "1s",
        "max_prepared_transactions": "5",
    }
    standby = await asyncio.to_thread(
        use_embedded, tmp_path, settings=QUICK | feedback | {"cluster_name": "reports"}
    )
    reader = await connect(standby.dsn)
    try:
        async with reader.transaction(isolation="repeatable_read"):
            await reader.execute("SELECT")
            await until(lambda: own_server.fetchval("SELECT backend_xmin FROM pg_stat_replication"))
            await enqueue(own_server)
            assert await causes(own_server, timedelta(minutes=10)) == []
            await enqueue(own_server)
            [(name, complaint)] = await causes(own_server)
            assert name == "standby reports"
            assert complaint.startswith(
                "standby reports (local, hot_standby_feedback) has kept vacuum from cleaning up for"
                " longer "
            )
        caught_up = (
            "SELECT r.backend_xmin::text::bigint >= (SELECT max(h.next_xid) FROM"
            " hybrid_runner.xid_history AS h) FROM pg_stat_replication AS r"
        )
        await until(lambda: own_server.fetchval(caught_up))
        assert await causes(own_server) == []
    finally:
        await reader.close()
        standby.close()


async def test_what_was_found_is_believed_until_the_next_look_of_somebody_else_is_due(
    database: Connection, another: Another
) -> None:
    now = 0.0
    growth = GrowthWatch(AT_ONCE, lambda: now)
    session = await another()
    await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
    await growth.run(database)
    assert f"session {session.get_server_pid()}" in " ".join(growth.pinned)
    now = 1500.0
    assert growth.pinned == ()
    await session.execute("ROLLBACK")
    await growth.run(database)
    assert growth.pinned == ()
