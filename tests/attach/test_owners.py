"""Whose rights what is made for a table has: its owner's, and no more than that table needs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from hybrid_runner.attach.checking import check
from hybrid_runner.attach.rendering import attaching, dropping_rest, dropping_triggers
from hybrid_runner.errors import RunnerError
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.model.sources import Columns, Source, SourceDefinition
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.attach.definitions import WORDS
from tests.support.two_owners import PASSWORD

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
OWNER, USER, STRANGER, RUNNER, WORKER = (
    f"hybrid_runner_test_{os.getpid()}_{name}"
    for name in ("owner", "user", "stranger", "runner", "works")
)
ROLES = (WORKER, STRANGER, USER, OWNER, RUNNER)
TABLE = f"""
CREATE SCHEMA app AUTHORIZATION {OWNER};
SET ROLE {OWNER};
CREATE TABLE app.audits (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text DEFAULT session_user,
    status text DEFAULT 'pending', worker text
);
ALTER TABLE app.audits ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON app.audits TO {USER} USING (tenant = current_user)
    WITH CHECK (tenant = current_user);
GRANT USAGE ON SCHEMA app TO {USER};
GRANT SELECT, INSERT, UPDATE, DELETE ON app.audits TO {USER};
RESET ROLE;
"""
DEFINITION = SourceDefinition(
    table="app.audits",
    kind="audit",
    when="status = 'pending'",
    words=WORDS,
    columns=Columns(status="status", worker_id="worker"),
    trust_owner=True,
)

OF_OTHERS = [
    "SELECT * FROM hybrid_runner.jobs",
    "SELECT payload FROM hybrid_runner.source_1_jobs",
    "SELECT * FROM hybrid_runner.row_changes",
    "SELECT row_key FROM hybrid_runner.source_1_changes",
    "SELECT * FROM hybrid_runner.sources",
    "SELECT * FROM hybrid_runner.late_rows",
    "INSERT INTO hybrid_runner.jobs (kind) VALUES ('other')",
    "INSERT INTO hybrid_runner.source_1_jobs (row_key, source) VALUES ('1', 1)",
    "INSERT INTO hybrid_runner.source_1_jobs (row_key, kind) VALUES ('1', 'other')",
    "INSERT INTO hybrid_runner.source_1_jobs (row_key, queue) VALUES ('1', 'other')",
    "INSERT INTO hybrid_runner.source_1_jobs (row_key, state) VALUES ('1', 'running')",
    ("INSERT INTO hybrid_runner.source_1_changes (row_key, what, source) VALUES ('1', 'gone', 2)"),
    "UPDATE hybrid_runner.source_1_jobs SET priority = 0",
    "DELETE FROM hybrid_runner.source_1_jobs",
    "INSERT INTO hybrid_runner.source_2_jobs (row_key) VALUES ('1')",
    "CREATE TABLE hybrid_runner.mine ()",
    (
        "SELECT hybrid_runner.write_rows("
        "1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"
    ),
]
NOT_FOR_ALL = [
    "SELECT hybrid_runner.source_1_want(1)",
    "SELECT * FROM hybrid_runner.source_1_rows('read', '{1}', 1)",
    (
        "SELECT * FROM hybrid_runner.source_1_write("
        "'{1}', '{1}', '{failed}', '{f}', '{1}', '{w}', NULL, NULL, NULL, NULL, NULL, false)"
    ),
    "INSERT INTO hybrid_runner.source_1_jobs (row_key) VALUES ('1')",
    "INSERT INTO hybrid_runner.source_1_changes (row_key, what) VALUES ('1', 'gone')",
    ("CREATE TRIGGER mine AFTER INSERT ON mine EXECUTE FUNCTION hybrid_runner.source_1_inserted()"),
]


@pytest.fixture
async def roles(database: Connection, dsn: str) -> AsyncIterator[None]:
    """Logins that can do nothing, the owner's table, and a schema of a role that is in both."""
    for role in ROLES:
        await database.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    name = await database.fetchval("SELECT current_database()")
    await database.execute(
        f'{TABLE} GRANT {OWNER} TO {RUNNER}; GRANT CREATE ON DATABASE "{name}" TO {RUNNER};'
        f"DROP SCHEMA hybrid_runner CASCADE; GRANT hybrid_runner_worker TO {WORKER}"
    )
    async with acting_as(dsn, RUNNER) as runner:
        await migrate(runner)
    yield
    for role in ROLES:
        await database.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


async def attach(
    dsn: str, definition: SourceDefinition = DEFINITION, *, role: str = RUNNER
) -> Source:
    """Attach a table by way of everything but the command."""
    async with acting_as(dsn, role) as connection, connection.transaction():
        number = await connection.fetchval(
            "INSERT INTO hybrid_runner.sources"
            " (relation, relation_name, kind, queue, owner, definition)"
            " VALUES ($1::text::regclass, $1, 'audit', 'default', 'x', '{}')"
            " ON CONFLICT (relation, kind) DO UPDATE SET made_at = now() RETURNING id",
            definition.table,
        )
        source = (await check(connection, definition, number)).source
        for statement in attaching(source):
            await connection.execute(statement)
        assert await connection.fetchval("SELECT current_user") == role
    return source


@asynccontextmanager
async def acting_as(dsn: str, role: str) -> AsyncIterator[Connection]:
    """A session of that login."""
    url = urlsplit(dsn)
    host = url.netloc.rpartition("@")[2]
    connection = await connect(urlunsplit(url._replace(netloc=f"{role}:{PASSWORD}@{host}")))
    try:
        yield connection
    finally:
        await connection.close()


async def work(dsn: str) -> set[str]:
    """Work on all jobs, as a worker; what became of their rows."""
    async with acting_as(dsn, WORKER) as worker:
        claims = (await claim_calls.claim_jobs(worker, "default", KINDS, 9, "w-1", 1)).claims
        named = [(claim.id, claim.number) for claim in claims]
        shown = await source_calls.show_claims(worker, named)
        ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
        assert len(await claim_calls.finish_jobs(worker, ends)) == len(claims)
    return {row.outcome for row in shown.values()}


@pytest.mark.usefixtures("roles")
async def test_end_users_under_row_level_security_insert_and_workers_write(
    database: Connection, dsn: str
) -> None:
    """RLS: end users insert. They need no right in hybrid_runner, and workers none on the table."""
    source = await attach(dsn)
    assert source.owner == OWNER
    async with acting_as(dsn, USER) as user:
        await user.execute(f"INSERT INTO app.audits (tenant) VALUES ('{USER}')")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await user.execute("INSERT INTO app.audits (tenant) VALUES ('else')")
    async with acting_as(dsn, OWNER) as owner:
        await owner.execute("INSERT INTO app.audits (tenant) VALUES ('else')")
    assert await work(dsn) == {"written"}
    async with acting_as(dsn, USER) as user:
        assert await user.fetchval("SELECT string_agg(status, ' ') FROM app.audits") == (
            "completed"
        )
        await user.execute("UPDATE app.audits SET status = 'pending'")
        await user.execute("DELETE FROM app.audits")
    noted = await database.fetch("SELECT row_key, what FROM hybrid_runner.row_changes")
    assert list(map(tuple, noted)) == [("1", "gone")]


@pytest.mark.usefixtures("roles")
async def test_what_is_made_belongs_to_the_owners_of_the_table_and_of_the_runner(
    database: Connection, dsn: str
) -> None:
    await attach(dsn)
    owners = await database.fetch(
        "SELECT DISTINCT proowner::regrole::text, prosecdef, proconfig[1] FROM pg_proc"
        " WHERE proname ~ '^source_1_'"
    )
    assert list(map(tuple, owners)) == [(OWNER, True, "search_path=pg_catalog, pg_temp")]
    of_views = await database.fetchval(
        "SELECT bool_and(relowner = (SELECT nspowner FROM pg_namespace WHERE oid = relnamespace))"
        " FROM pg_class WHERE relname ~ '^source_1_'"
    )
    assert of_views
    assert not await database.fetchval(
        "SELECT has_schema_privilege($1, 'hybrid_runner', 'CREATE')", OWNER
    )


@pytest.mark.usefixtures("roles")
async def test_the_owner_of_a_table_reaches_nothing_but_its_own_jobs(
    database: Connection, dsn: str
) -> None:
    await attach(dsn)
    await database.execute(
        "CREATE TABLE public.others (id bigint PRIMARY KEY, status text, worker text)"
    )
    await database.execute(f"ALTER TABLE public.others OWNER TO {RUNNER}")
    await attach(dsn, replace(DEFINITION, table="public.others"))
    async with acting_as(dsn, OWNER) as owner:
        for statement in OF_OTHERS:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await owner.execute(statement)


@pytest.mark.usefixtures("roles")
@pytest.mark.parametrize(
    ("role", "group"),
    [
        (USER, None),
        (STRANGER, None),
        (STRANGER, "hybrid_runner_producer"),
        (STRANGER, "hybrid_runner_reader"),
    ],
    ids=["user", "stranger", "producer", "reader"],
)
async def test_other_roles_than_workers_cannot_call_what_was_made(
    database: Connection, dsn: str, role: str, group: str | None
) -> None:
    await attach(dsn)
    if group is not None:
        await database.execute(f"GRANT {group} TO {role}")
    async with acting_as(dsn, role) as other:
        await other.execute("CREATE TEMPORARY TABLE mine (id bigint, status text)")
        for statement in NOT_FOR_ALL:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await other.execute(statement)


@pytest.mark.usefixtures("roles")
async def test_a_migration_leaves_the_rights_of_what_was_made(
    database: Connection, dsn: str
) -> None:
    """Grants are taken away and given again by each migration."""
    await attach(dsn)
    async with acting_as(dsn, RUNNER) as runner:
        await runner.execute("COMMENT ON TABLE hybrid_runner.migrations IS NULL")
        await migrate(runner)
    await database.execute("INSERT INTO app.audits DEFAULT VALUES")
    assert await work(dsn) == {"written"}


@pytest.mark.usefixtures("roles")
async def test_a_role_that_is_neither_owner_attaches_as_a_member_of_both(
    database: Connection, dsn: str
) -> None:
    """And a schema that belongs to no superuser is migrated again afterwards."""
    await database.execute(f"GRANT {OWNER}, {RUNNER} TO {STRANGER}")
    await attach(dsn, role=STRANGER)
    async with acting_as(dsn, USER) as user:
        await user.execute(f"INSERT INTO app.audits (tenant) VALUES ('{USER}')")
    assert await work(dsn) == {"written"}
    async with acting_as(dsn, RUNNER) as runner:
        await runner.execute("COMMENT ON TABLE hybrid_runner.migrations IS NULL")
        await migrate(runner)
    async with acting_as(dsn, OWNER) as owner:
        await owner.execute("UPDATE app.audits SET status = 'pending'")
    assert await work(dsn) == {"written"}
    async with acting_as(dsn, STRANGER) as stranger, stranger.transaction():
        for statement in dropping_triggers(1, RUNNER) + dropping_rest(1, RUNNER):
            await stranger.execute(statement)
    async with acting_as(dsn, USER) as user:
        await user.execute(f"INSERT INTO app.audits (tenant) VALUES ('{USER}')")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.usefixtures("roles")
async def test_own_triggers_find_names_by_what_is_set_for_the_owner(
    database: Connection, dsn: str
) -> None:
    """Functions of triggers that name no schema, and set no path."""
    await database.execute(
        f"CREATE SCHEMA shared AUTHORIZATION {OWNER}; ALTER ROLE {OWNER} SET search_path = shared;"
        f"SET ROLE {OWNER}; CREATE TABLE shared.log (word text);"
        "CREATE FUNCTION app.note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO log VALUES (new.status); RETURN null; END';"
        "CREATE TRIGGER note AFTER UPDATE ON app.audits FOR EACH ROW EXECUTE FUNCTION app.note();"
        "RESET ROLE"
    )
    assert (await attach(dsn)).search_path == "shared"
    # A worker must not put a table of its own in the way: what that fires would run as the owner.
    async with acting_as(dsn, WORKER) as worker:
        await worker.execute("CREATE TEMPORARY TABLE log (word text); GRANT ALL ON log TO PUBLIC")
    await database.execute("INSERT INTO app.audits DEFAULT VALUES")
    assert await work(dsn) == {"written"}
    assert await database.fetchval("SELECT string_agg(word, ' ') FROM shared.log") == (
        "processing completed"
    )
    name = await database.fetchval("SELECT quote_ident(current_database())")
    await database.execute(f"ALTER ROLE {OWNER} RESET search_path")
    await database.execute(f"ALTER DATABASE {name} SET search_path = 'a b', c")
    assert (await attach(dsn)).search_path == '"a b", c'


@pytest.mark.usefixtures("roles")
async def test_rows_that_a_policy_hides_from_their_owner_since_are_not_taken_for_gone(
    database: Connection, dsn: str
) -> None:
    """FORCE ROW LEVEL SECURITY after the table was attached."""
    await attach(dsn)
    async with acting_as(dsn, OWNER) as owner:
        await owner.execute("INSERT INTO app.audits (tenant) VALUES ('else')")
        await owner.execute("ALTER TABLE app.audits FORCE ROW LEVEL SECURITY")
    async with acting_as(dsn, WORKER) as worker:
        (claim,) = (await claim_calls.claim_jobs(worker, "default", KINDS, 9, "w-1", 1)).claims
        shown = await source_calls.show_claims(worker, [(claim.id, claim.number)])
        assert shown[claim.id].outcome == "refused"
        await claim_calls.requeue_jobs(worker, [Requeued(claim, timedelta(0), charged=False)])
        with pytest.raises(RunnerError, match="row-level security"):
            await row_calls.cancel_jobs_without_rows(worker, 1, "", 100)
    assert await database.fetchval("SELECT state FROM hybrid_runner.jobs") == "queued"
    async with acting_as(dsn, OWNER) as owner:
        await owner.execute("ALTER TABLE app.audits NO FORCE ROW LEVEL SECURITY")
    assert await work(dsn) == {"written"}
