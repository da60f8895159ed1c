"""A worker's login is no administrator of the server, nor the owner of the schema."""

from __future__ import annotations

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins

TRIGGER_FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = 'hybrid_runner'::regnamespace AND prorettype = 'trigger'::regtype
"""
GRANTED = """
SELECT a.grantee::regrole::text
FROM pg_proc AS p
CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
WHERE p.oid = $1::text::regprocedure AND a.grantee <> p.proowner
"""
OWN_TABLE = """
CREATE TYPE pg_temp.evil AS ENUM ('x');
CREATE FUNCTION pg_temp.became(pg_temp.evil) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$;
CREATE CAST (pg_temp.evil AS text) WITH FUNCTION pg_temp.became(pg_temp.evil) AS IMPLICIT;
CREATE TEMP TABLE mine (queue pg_temp.evil, run_at timestamptz)
"""
OWN_TRIGGER = """
CREATE TRIGGER mine AFTER INSERT ON mine REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_inserted_jobs()
"""


@pytest.mark.parametrize("who", [who for who in Login if who.group])
async def test_nobody_has_our_trigger_function_run_his_casts(login: Logins, who: Login) -> None:
    connection = await connect(login(who))
    await connection.execute(OWN_TABLE)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="ring_for_inserted_jobs"):
        await connection.execute(OWN_TRIGGER)
    await connection.close()


async def test_no_role_may_execute_a_function_of_a_trigger(unchanged: Connection) -> None:
    functions = [row[0] for row in await unchanged.fetch(TRIGGER_FUNCTIONS)]
    assert functions
    for function in functions:
        granted = await unchanged.fetch(GRANTED, function)
        assert [row[0] for row in granted] == []


async def test_no_argument_of_a_function_takes_a_type_of_the_caller(
    unchanged: Connection,
) -> None:
    """What is polymorphic would bring the caller's operators and casts along. Rows of our own
    tables are for functions that only our functions call.
    """
    rows = await unchanged.fetch(
        "SELECT p.oid::regprocedure::text, t.oid::regtype::text FROM pg_proc AS p"
        " CROSS JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) AS a (id)"
        " JOIN pg_type AS t ON t.oid = a.id"
        " WHERE p.pronamespace = 'hybrid_runner'::regnamespace"
        " AND (t.typtype IN ('p', 'd') OR t.typnamespace <> 'pg_catalog'::regnamespace)"
    )
    assert {row[1] for row in rows} <= {"hybrid_runner.schedules"}
    for row in rows:
        granted = await unchanged.fetch(GRANTED, row[0])
        assert [name for (name,) in granted] == [], row[0]


async def test_a_doorbell_is_a_sequence_of_ours(login: Logins, database: Connection) -> None:
    """Functions that run as the owner write to the sequence that the row names."""
    await database.execute(
        "CREATE SEQUENCE public.orders_id_seq; SELECT hybrid_runner.open_queue('default')"
    )
    connection = await connect(login(Login.WORKER))
    for statement in (
        "UPDATE hybrid_runner.queues SET doorbell = 'public.orders_id_seq'",
        "INSERT INTO hybrid_runner.queues (name, doorbell) VALUES ('x', 'public.orders_id_seq')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await connection.close()


async def test_a_worker_cannot_turn_back_the_numbers_of_jobs_and_claims(login: Logins) -> None:
    connection = await connect(login(Login.WORKER))
    for sequence in ("jobs_id_seq", "claims"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT setval($1::text, 1)", f"hybrid_runner.{sequence}")
    await connection.close()
