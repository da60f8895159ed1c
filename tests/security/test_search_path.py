"""Functions and operators that an attacker put where an unqualified name finds them first: no
session of ours calls one.
"""

from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner import Job, RetryPolicy, Runner
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import as_script, migrate
from hybrid_runner.storage.queries import migrations
from tests.support.logins import Login, Logins
from tests.support.working import outcome, runner, working

OPEN_SCHEMA = "GRANT CREATE ON SCHEMA public TO PUBLIC"
"""As PostgreSQL 14 makes every database, and as it stays when that one is upgraded."""
SPRUNG = "CREATE SEQUENCE public.sprung; GRANT ALL ON SEQUENCE public.sprung TO PUBLIC"
"""Counts calls, also those of transactions that are rolled back."""
TRAPS = (
    ("format(text, text)", "text", "pg_catalog.format($1, VARIADIC ARRAY[$2])"),
    ("format(text, text, text)", "text", "pg_catalog.format($1, VARIADIC ARRAY[$2, $3])"),
    ("format(text, jsonb)", "text", "pg_catalog.format($1, $2)"),
    ("array_position(text[], text)", "integer", "pg_catalog.array_position($1, $2)"),
    ("unnest(text[])", "SETOF text", "pg_catalog.unnest($1)"),
    ("unnest(bigint[])", "SETOF bigint", "pg_catalog.unnest($1)"),
    ("num_nulls(timestamptz)", "integer", "pg_catalog.num_nulls($1)"),
    ("jsonb_build_object(text, text)", "jsonb", "'{}'"),
    ("to_jsonb(text)", "jsonb", "pg_catalog.to_jsonb($1)"),
    ("cardinality(text[])", "integer", "pg_catalog.cardinality($1)"),
    ("divided(interval, integer)", "interval", "pg_catalog.interval_div($1, $2)"),
    ("slower(timestamptz, timestamptz)", "boolean", "true"),
    ("multiplied(bigint, interval)", "interval", "$2"),
    ("compared(double precision, numeric)", "boolean", "true"),
    ("make_interval(numeric)", "interval", "'0'"),
    ("joined(text, integer)", "text", "$1 || $2::text"),
)
"""Each an exact match for a call that is polymorphic, or needs a cast, in pg_catalog."""
OPERATORS = (
    ("/", "interval", "integer", "divided"),
    ("||", "text", "integer", "joined"),
    ("*", "bigint", "interval", "multiplied"),
    (">=", "double precision", "numeric", "compared"),
)


async def plant(connection: Connection, schema: str = "public") -> None:
    """Make all traps, as whoever is connected."""
    for signature, returns, answer in TRAPS:
        many = returns.startswith("SETOF")
        await connection.execute(
            f"CREATE FUNCTION {schema}.{signature} RETURNS {returns} LANGUAGE plpgsql AS"
            " $$BEGIN PERFORM pg_catalog.nextval('public.sprung');"
            f" {f'RETURN QUERY SELECT {answer}' if many else f'RETURN {answer}'}; END$$"
        )
    for sign, left, right, function in OPERATORS:
        await connection.execute(
            f"CREATE OPERATOR {schema}.{sign} (LEFTARG = {left}, RIGHTARG = {right},"
            f" FUNCTION = {schema}.{function})"
        )


async def planted_by_nobody(owner: str, attacker: str) -> None:
    """A database as PostgreSQL 14 has them, in which a login without rights has made the traps."""
    connection = await asyncpg.connect(owner)
    await connection.execute(f"{OPEN_SCHEMA}; {SPRUNG}")
    await connection.close()
    connection = await asyncpg.connect(attacker)
    await plant(connection)
    await connection.close()


async def times_sprung(dsn: str) -> int:
    """How often any of them was called."""
    connection = await connect(dsn)
    count: int | None = await connection.fetchval("SELECT pg_sequence_last_value('public.sprung')")
    await connection.close()
    return count or 0


def as_nobody(dsn: str) -> str:
    return Logins(dsn)(Login.NOBODY)


@pytest.mark.usefixtures("_logins")
async def test_a_trap_springs_for_whoever_searches_public_and_so_the_others_here_prove_something(
    empty_dsn: str,
) -> None:
    await planted_by_nobody(empty_dsn, as_nobody(empty_dsn))
    careless = await asyncpg.connect(empty_dsn)
    assert await careless.fetchval("SELECT format('%s', 'x'::text)") == "x"
    await careless.fetchval("SELECT interval '1 hour' / 2")
    await careless.close()
    assert await times_sprung(empty_dsn) == 2


@pytest.mark.usefixtures("_logins")
async def test_migrate_calls_nothing_that_a_stranger_made(empty_dsn: str) -> None:
    await planted_by_nobody(empty_dsn, as_nobody(empty_dsn))
    connection = await connect(empty_dsn)
    assert len(await migrate(connection)) == len(migrations())
    await connection.close()
    assert await times_sprung(empty_dsn) == 0


@pytest.mark.usefixtures("_logins")
async def test_migrate_by_a_session_that_searches_public_calls_nothing_either(
    empty_dsn: str,
) -> None:
    """As a pooler gives them."""
    await planted_by_nobody(empty_dsn, as_nobody(empty_dsn))
    connection = await asyncpg.connect(empty_dsn)
    assert len(await migrate(connection)) == len(migrations())
    await connection.close()
    assert await times_sprung(empty_dsn) == 0


@pytest.mark.usefixtures("_logins")
async def test_the_printed_script_calls_nothing_that_a_stranger_made(empty_dsn: str) -> None:
    await planted_by_nobody(empty_dsn, as_nobody(empty_dsn))
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute(as_script())
    path = await connection.fetchval("SHOW search_path")
    await connection.close()
    assert await times_sprung(empty_dsn) == 0
    assert path == '"$user", public'  # the session is the caller's


async def test_traps_in_the_sessions_own_temporary_schema_are_not_called_either(
    empty_dsn: str,
) -> None:
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute(SPRUNG)
    await plant(connection, "pg_temp")
    await connection.execute(
        "CREATE TEMP TABLE pg_roles (rolname name, rolsuper boolean, rolcreaterole boolean);"
        "CREATE TEMP TABLE pg_class (oid oid); CREATE TEMP TABLE pg_namespace (oid oid);"
        "CREATE TEMP TABLE pg_inherits (inhrelid oid);"
        "SET search_path = pg_temp, public, pg_catalog"
    )
    assert len(await migrate(connection)) == len(migrations())
    await connection.close()
    assert await times_sprung(empty_dsn) == 0


async def test_a_worker_calls_nothing_that_a_stranger_made(dsn: str, login: Logins) -> None:
    await planted_by_nobody(dsn, login(Login.NOBODY))
    app = runner(login(Login.WORKER), keep_completed="2h")

    @app.job("work", retry=RetryPolicy(base=timedelta(0), cap=timedelta(milliseconds=20)))
    async def work(payload: dict[str, str], job: Job) -> str:
        job.progress(0.5, "half")
        if job.attempt == 1:
            raise ValueError("once more")
        return "done"

    async with working(app) as worker:
        assert (await outcome(app, "work")).result == "done"
        handle = await app.enqueue("work", {}, delay="1h")
        assert await app.cancel(handle.id) == "cancelled"
        assert await app.retry(handle.id) == "queued"
        await worker.idle()
    assert await times_sprung(dsn) == 0


async def test_enqueueing_on_a_callers_connection_calls_nothing_that_a_stranger_made(
    dsn: str, login: Logins
) -> None:
    """It has the search path of the caller, who may use names of his own in it."""
    await planted_by_nobody(dsn, login(Login.NOBODY))
    app = Runner(login(Login.PRODUCER))
    connection = await asyncpg.connect(login(Login.PRODUCER))
    await app.enqueue("work", {}, connection=connection)
    await app.enqueue("work", {}, connection=connection, delay="1h", key="one")
    await app.enqueue_many("work", [{"n": n} for n in range(3)], connection=connection)
    for keys in ((None, None), ("two", "three")):
        jobs = [NewJob(kind, key=key) for kind, key in zip(("one", "two"), keys, strict=True)]
        assert len(await client_calls.enqueue_many(connection, jobs, "exists")) == 2
    await connection.close()
    await app.close()
    assert await times_sprung(dsn) == 0


async def test_completing_on_a_callers_connection_calls_nothing_that_a_stranger_made(
    dsn: str, login: Logins
) -> None:
    await planted_by_nobody(dsn, login(Login.NOBODY))
    app = runner(login(Login.WORKER))

    @app.job("own")
    async def own(payload: dict[str, str], job: Job) -> str:
        connection = await asyncpg.connect(login(Login.WORKER))
        await job.complete("mine", connection=connection)
        await connection.close()
        return "ignored"

    async with working(app):
        assert (await outcome(app, "own")).result == "mine"
    assert await times_sprung(dsn) == 0


async def test_every_session_that_is_opened_searches_the_catalogue_alone(
    dsn: str, database: Connection
) -> None:
    app = Runner(dsn)
    async with app:
        connection = await app.connect()
        for session in (connection, database):
            assert await session.fetchval("SHOW search_path") == "pg_catalog, pg_temp"
        await connection.close()
