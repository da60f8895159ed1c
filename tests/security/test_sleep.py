"""A login without any right holds whatever locks it likes: workers sleep, wake and fill up as if it
were not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.bells import (
    EASILY_AWAKE,
    INSERT,
    MUTED_FOR,
    MUTED_FOR_LONG,
    Handlers,
    found_without_poll,
    seen,
    until_asleep,
    until_bell,
    until_mode,
)
from tests.support.logins import Login, Logins
from tests.support.working import working

KEYS = [(1212371538, number) for number in range(5)]
"""Under such keys sleepers held locks once: a word, and the number of a queue."""


@pytest.fixture(params=["exclusive", "shared"])
async def stranger(request: pytest.FixtureRequest, login: Logins) -> AsyncIterator[Connection]:
    """It holds those locks, and those of every queue's number and doorbell that it may guess."""
    connection = await connect(login(Login.NOBODY))
    take = "pg_advisory_lock_shared" if request.param == "shared" else "pg_advisory_lock"
    for word, number in KEYS:
        await connection.execute(f"SELECT {take}({word}, {number}), {take}({number})")
    yield connection
    await connection.close()


async def test_locks_of_a_stranger_keep_nobody_from_sleeping(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    jobs = Handlers(dsn, **EASILY_AWAKE, **MUTED_FOR_LONG)
    async with working(jobs.app) as worker:
        await until_asleep(database, worker)
        for _ in range(3):
            ids = [await database.fetchval(INSERT, "note") for _ in range(20)]
            assert sorted([await jobs.next() for _ in ids]) == ids
            await until_asleep(database, worker)
        await database.fetchval(INSERT, "note")
        await jobs.next()
        assert worker.status().listeners_lost == 0
        assert found_without_poll(worker) <= {"ring", "look"}
    assert not stranger.is_closed()


async def test_locks_of_a_stranger_are_no_sleepers(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    """A full worker that is alone keeps its mute."""
    jobs = Handlers(dsn, slots=1, **MUTED_FOR_LONG)
    async with working(jobs.app) as worker:
        await until_asleep(database, worker)
        await database.fetchval(INSERT, "hold")
        await asyncio.wait_for(jobs.held.wait(), 120)
        await until_mode(worker, "full")
        muted = await until_bell(database, bool)
        await until_bell(database, lambda value: value > muted)
        assert await database.fetchval(MUTED_FOR) > 0
        assert seen(worker).mode == "full"
        jobs.let_go.set()
    assert not stranger.is_closed()


@pytest.mark.parametrize("who", [Login.NOBODY, Login.PRODUCER, Login.OTHER_PRODUCER])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT FROM hybrid_runner.sleepers",
        "INSERT INTO hybrid_runner.sleepers VALUES ('default', 1, true)",
        "DELETE FROM hybrid_runner.sleepers",
        "BEGIN; LOCK TABLE hybrid_runner.sleepers IN ACCESS SHARE MODE",
        "SELECT hybrid_runner.join_sleepers(ARRAY['default'])",
        "SELECT hybrid_runner.leave_sleepers()",
        "SELECT hybrid_runner.open_bell('default')",
        "SELECT hybrid_runner.mute_bell('default', 1, 'full', false)",
    ],
)
async def test_the_table_of_sleepers_is_the_workers_alone(
    who: Login, statement: str, login: Logins
) -> None:
    with (
        psycopg.connect(login(who), autocommit=True) as attacker,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        attacker.execute(statement.encode())
