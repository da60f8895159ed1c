"""Jobs of a transaction that is prepared, and committed later by somebody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.worker_calls import find_unannounced
from tests.support.rings import listening
from tests.support.working import runner, working

QUIET = "SET LOCAL hybrid_runner.quiet = on"
INSERT = "INSERT INTO hybrid_runner.jobs (id, kind, payload) VALUES (7, 'quiet', '1')"


async def prepare(connection: Connection, *statements: str) -> None:
    """All in one transaction, up to the first phase."""
    await connection.execute(f"BEGIN; {'; '.join(statements)}; PREPARE TRANSACTION 'test'")


async def test_a_transaction_that_rings_cannot_be_prepared(dsn: str, database: Connection) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    with pytest.raises(asyncpg.FeatureNotSupportedError, match="NOTIFY"):
        await prepare(database, "INSERT INTO hybrid_runner.jobs (kind) VALUES ('k')")


async def test_a_quiet_one_can_whatever_it_does_to_jobs(
    dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    await database.execute(
        "SELECT setval('hybrid_runner.stream_readers_until', 9000000000000)"  # somebody reads
    )
    ids = await database.fetch(
        "INSERT INTO hybrid_runner.jobs (kind, key) SELECT 'k', 'k' || n FROM generate_series(1, 4)"
        " AS n RETURNING id"
    )
    first, second, third, _ = (row[0] for row in ids)
    await database.execute("UPDATE hybrid_runner.jobs SET version = 1 WHERE id = $1", third)
    async with listening(dsn) as rings:
        await prepare(
            database,
            QUIET,
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('k')",
            "SELECT hybrid_runner.enqueue('k', delay => '1 s')",
            "SELECT hybrid_runner.enqueue('k', key => 'k4', on_conflict => 'replace')",
            f"SELECT hybrid_runner.cancel({first})",
            f"SELECT hybrid_runner.retry({second})",
            f"SELECT hybrid_runner.amend({third}, 1, priority => 1)",
        )
        await database.execute("COMMIT PREPARED 'test'")
        assert await rings.so_far() == []
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 5


async def test_its_jobs_are_found_by_polls(dsn: str, database: Connection) -> None:
    app = runner(dsn, poll_base=1, poll_cap=1)

    @app.job("quiet")
    async def quiet(payload: int) -> int:
        return payload

    async with working(app):
        await prepare(database, QUIET, INSERT)
        await database.execute("COMMIT PREPARED 'test'")
        assert await app.handle(7).wait(120) == 1


async def test_its_jobs_are_none_whose_rings_were_missed(database: Connection) -> None:
    await prepare(database, QUIET, INSERT)
    await database.execute("COMMIT PREPARED 'test'")
    assert (await find_unannounced(database, "default", [7]))[1] == 0
    await database.execute(INSERT.replace("7", "8"))
    assert (await find_unannounced(database, "default", [7, 8]))[1] == 1


async def test_whoever_commits_can_ring_for_them(dsn: str, database: Connection) -> None:
    app = runner(dsn, poll_base="5m", poll_cap="5m")

    @app.job("quiet")
    async def quiet(payload: int) -> int:
        return payload

    async with working(app):
        await prepare(database, QUIET, INSERT)
        await database.execute("COMMIT PREPARED 'test'")
        await database.execute('NOTIFY "hybrid_runner.default"')
        assert await app.handle(7).wait(120) == 1


async def test_what_is_no_word_for_yes_or_no_is_refused(database: Connection) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    await database.execute("SET hybrid_runner.quiet = 'maybe'")
    with pytest.raises(asyncpg.InvalidTextRepresentationError, match="maybe"):
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('k')")
