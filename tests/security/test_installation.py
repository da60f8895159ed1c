"""What is in a database before `migrate` runs there, made by somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from hybrid_runner.errors import DatabaseError
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import (
    as_script,
    migrate,
    refuse_unreleased,
    require_schema,
    schema_version,
)
from hybrid_runner.storage.queries import migrations
from tests.support.logins import Login, Logins
from tests.support.server import Databases

pytestmark = pytest.mark.usefixtures("_logins")

SCHEMA = "CREATE SCHEMA hybrid_runner; GRANT USAGE ON SCHEMA hybrid_runner TO PUBLIC"
TABLE = """
CREATE TABLE hybrid_runner.migrations (
    version integer PRIMARY KEY, name text, checksum text, applied_at timestamptz DEFAULT now());
GRANT ALL ON hybrid_runner.migrations TO PUBLIC
"""
BECAME = """
CREATE FUNCTION hybrid_runner.became() RETURNS integer LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$
"""
TRIGGER = """
CREATE FUNCTION hybrid_runner.became_by_insert() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$;
CREATE TRIGGER became BEFORE INSERT ON hybrid_runner.migrations
FOR EACH ROW EXECUTE FUNCTION hybrid_runner.became_by_insert()
"""
VIEW = """
CREATE VIEW hybrid_runner.migrations AS
SELECT hybrid_runner.became() AS version, ''::text AS name, ''::text AS checksum;
GRANT ALL ON hybrid_runner.migrations TO PUBLIC
"""
POLICY = """
INSERT INTO hybrid_runner.migrations VALUES (1, 'x', 'x');
ALTER TABLE hybrid_runner.migrations ENABLE ROW LEVEL SECURITY;
CREATE POLICY became ON hybrid_runner.migrations USING (hybrid_runner.became() > 0)
"""
CAST = """
CREATE TYPE hybrid_runner.evil AS ENUM ('x');
CREATE FUNCTION hybrid_runner.became_json(hybrid_runner.evil) RETURNS json LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$;
CREATE CAST (hybrid_runner.evil AS json)
    WITH FUNCTION hybrid_runner.became_json(hybrid_runner.evil);
ALTER TABLE hybrid_runner.migrations ADD COLUMN evil hybrid_runner.evil DEFAULT 'x';
INSERT INTO hybrid_runner.migrations VALUES (1, 'x', 'x')
"""
MADE = {
    "schema": SCHEMA,
    "trigger": f"{SCHEMA};{TABLE};{TRIGGER}",
    "view": f"{SCHEMA};{BECAME};{VIEW}",
    "policy": f"{SCHEMA};{TABLE};{BECAME};{POLICY}",
    "cast": f"{SCHEMA};{TABLE};{CAST}",
}


@pytest.fixture(params=MADE)
async def prepared(request: pytest.FixtureRequest, empty_dsn: str) -> str:
    """The DSN of a database for which a login had CREATE, and used it."""
    owner = await asyncpg.connect(empty_dsn)
    name = await owner.fetchval("SELECT current_database()")
    await owner.execute(f'GRANT CREATE ON DATABASE "{name}" TO "{Login.NOBODY.role}"')
    await owner.close()
    attacker = await asyncpg.connect(Logins(empty_dsn)(Login.NOBODY))
    await attacker.execute(MADE[request.param])
    await attacker.close()
    return empty_dsn


async def test_a_superuser_does_not_touch_what_somebody_else_has_made(prepared: str) -> None:
    refusal = f"the schema hybrid_runner belongs to role {Login.NOBODY.role}, who would get"
    connection = await connect(prepared)
    with pytest.raises(DatabaseError, match=refusal) as refused:
        await migrate(connection)
    assert "\n" not in str(refused.value)
    await connection.close()


async def test_the_printed_script_refuses_it_too(prepared: str) -> None:
    connection = await asyncpg.connect(prepared)
    with pytest.raises(
        asyncpg.PostgresError,
        match=f"belongs to role {Login.NOBODY.role}: migrate as {Login.NOBODY.role}, or, if it is"
        " not yours, drop it",
    ):
        await connection.execute(as_script())
    await connection.close()


@pytest.mark.parametrize("is_superuser", [True, False])
async def test_whoever_looks_for_the_schema_runs_no_code_of_his(
    prepared: str, *, is_superuser: bool
) -> None:
    connection = await connect(prepared if is_superuser else Logins(prepared)(Login.PRODUCER))
    said = []
    for call in (schema_version, refuse_unreleased, require_schema, migrate):
        try:
            await call(connection)
        except DatabaseError as error:
            said.append(str(error))
    await connection.close()
    assert not [line for line in said if "became" in line]


async def test_a_schema_that_was_made_for_the_one_who_migrates_is_his(
    owner: str, empty_dsn: str
) -> None:
    connection = await connect(empty_dsn)
    await connection.execute(f'CREATE SCHEMA hybrid_runner AUTHORIZATION "{owner}"')
    await connection.execute(f'SET SESSION AUTHORIZATION "{owner}"')
    assert len(await migrate(connection)) == len(migrations())
    await connection.execute("RESET SESSION AUTHORIZATION")
    with pytest.raises(DatabaseError, match=f"belongs to role {owner}.*: log in as {owner}"):
        await migrate(connection)
    await connection.execute(f'GRANT "{owner}" TO CURRENT_USER')
    # to be a member of a role is no sign of trust in it: its owner may have granted it
    with pytest.raises(DatabaseError, match=f"belongs to role {owner}.*: log in as {owner}"):
        await migrate(connection)
    with pytest.raises(asyncpg.PostgresError, match=f"belongs to role {owner}: migrate as"):
        await connection.execute(as_script())
    await connection.execute("ROLLBACK")
    await connection.execute(f'REVOKE "{owner}" FROM CURRENT_USER')
    await connection.execute(
        f'REASSIGN OWNED BY "{owner}" TO CURRENT_USER; DROP OWNED BY "{owner}"'
    )
    await connection.close()


async def test_whoever_was_made_a_member_of_the_owner_by_the_owner_is_not_taken_in(
    empty_dsn: str,
) -> None:
    connection = await connect(empty_dsn)
    member, owner = Login.PRODUCER.role, Login.NOBODY.role
    database = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'GRANT CREATE ON DATABASE "{database}" TO "{member}"')
    await connection.execute(f'CREATE SCHEMA hybrid_runner AUTHORIZATION "{owner}"')
    await connection.execute(f'GRANT "{owner}" TO "{member}"')
    try:
        migrating = await connect(Logins(empty_dsn)(Login.PRODUCER))
        with pytest.raises(DatabaseError, match=f"belongs to role {owner}: migrate as {owner}"):
            await migrate(migrating)
        await migrating.close()
    finally:
        await connection.execute(f'REVOKE "{owner}" FROM "{member}"')
        await connection.close()


@pytest.fixture
def owner(databases: Databases) -> Iterator[str]:
    """A role that may do nothing in particular."""
    name = f"{Login.NOBODY.role}_owner"
    databases.connection.execute(f'CREATE ROLE "{name}" NOLOGIN')
    yield name
    databases.connection.execute(f'DROP ROLE "{name}"')


@pytest.fixture
async def bytewise_dsn(databases: Databases) -> AsyncIterator[str]:
    """The DSN of a database that takes any byte for a letter."""
    databases.connection.execute(
        "CREATE DATABASE hybrid_runner_test_ascii TEMPLATE template0 ENCODING 'SQL_ASCII'"
        " LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    yield databases.server.dsn_of("hybrid_runner_test_ascii")
    databases.drop("hybrid_runner_test_ascii")


async def test_a_database_that_is_not_in_utf8_is_refused_in_one_line(
    bytewise_dsn: str,
) -> None:
    connection = await connect(bytewise_dsn)
    with pytest.raises(DatabaseError) as refusal:
        await migrate(connection)
    assert str(refusal.value).startswith(
        "the database hybrid_runner_test_ascii is in SQL_ASCII, and hybrid_runner needs UTF8: make"
        " one with CREATE DATABASE"
    )
    assert "\n" not in str(refusal.value)
    assert await connection.fetchval("SELECT to_regnamespace('hybrid_runner')") is None
    await connection.close()
