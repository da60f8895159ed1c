from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import pytest

from hybrid_runner import Runner
from hybrid_runner.errors import DatabaseError, SchemaMissing, SchemaTooNew, SchemaUnreleased
from hybrid_runner.model.news import CancelRequested
from hybrid_runner.storage import client_calls, worker_calls
from hybrid_runner.storage import migrations as migrating
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.installed import digest, record
from hybrid_runner.storage.migrations import (
    as_script,
    migrate,
    refuse_unreleased,
    require_schema,
    schema_version,
)
from hybrid_runner.storage.monitor_schema import install_monitors
from hybrid_runner.storage.queries import Migration, functions, migrations
from hybrid_runner.version import VERSION
from tests.support.beats import told
from tests.support.jobs import claim, ended, enqueue, living
from tests.support.server import Databases, embedded
from tools.roles import make_groups
from tools.schema_dump import dump

NEWEST = migrations()[-1].version
MIGRATOR = """
import asyncio, sys
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
async def main():
    connection = await connect(sys.argv[1])
    print("connected", flush=True)
    sys.stdin.readline()
    print(*[step.version for step in await migrate(connection)])
    await connection.close()
asyncio.run(main())
"""


def test_four_processes_that_migrate_at_once_apply_each_step_once(empty_dsn: str) -> None:
    """F3"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATOR, empty_dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reports = [process.communicate(timeout=120) for process in processes]
    assert [
        (process.returncode, errors)
        for process, (_, errors) in zip(processes, reports, strict=True)
    ] == [(0, "")] * 4
    assert sorted(int(version) for said, _ in reports for version in said.split()) == list(
        range(1, NEWEST + 1)
    )


async def test_a_second_run_changes_nothing(dsn: str, database: Connection) -> None:
    before = dump(dsn)
    assert await migrate(database) == []
    assert dump(dsn) == before


async def test_the_printed_script_makes_what_migrate_makes(dsn: str, empty_dsn: str) -> None:
    """`hybrid-runner sql` is the truth."""
    connection = await connect(empty_dsn)
    await connection.execute(as_script())
    assert await schema_version(connection) == NEWEST
    await connection.close()
    assert dump(empty_dsn) == dump(dsn)


async def test_the_script_for_a_current_database_makes_functions_and_grants_anew(
    dsn: str, database: Connection
) -> None:
    before = dump(dsn)
    await database.execute("DROP FUNCTION hybrid_runner.pause")
    assert dump(dsn) != before
    await database.execute(as_script(NEWEST))
    assert dump(dsn) == before


async def test_every_function_is_one_that_postgres_can_read(database: Connection) -> None:
    """`migrate` does not have them checked, since one may name another that is made after it; here
    all are there.
    """
    for _, sql in functions():
        await database.execute(sql)


async def test_no_function_is_left_that_has_no_file(database: Connection) -> None:
    """CREATE OR REPLACE leaves the old one there when arguments change: the migration that changes
    them drops it.
    """
    rows = await database.fetch(
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'hybrid_runner'::regnamespace ORDER"
        " BY proname"
    )
    assert [row[0] for row in rows] == [name for name, _ in functions()]


async def test_migrating_is_done_whole_or_not_at_all(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database never has tables of one version and functions of another."""
    connection = await connect(empty_dsn)
    with monkeypatch.context() as patch:
        patch.setattr(
            migrating,
            "functions",
            lambda: (*functions(), ("broken", "SELECT nothing_of_the_kind()")),
        )
        with pytest.raises(DatabaseError, match="nothing_of_the_kind"):
            await migrate(connection)
    assert await schema_version(connection) == 0
    assert await connection.fetchval("SELECT to_regnamespace('hybrid_runner')") is None
    await connection.close()


async def test_a_newer_schema_is_refused_with_one_line(dsn: str, database: Connection) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.migrations (version, name, checksum) VALUES (999,"
        " 'from_the_future', '')"
    )
    before = dump(dsn)
    with pytest.raises(SchemaTooNew) as refusal:
        await migrate(database)
    assert (
        str(refusal.value)
        == f"the database's schema is version 999, this version knows {NEWEST}: upgrade"
        " hybrid-runner"
    )
    with pytest.raises(SchemaTooNew):
        as_script(999)
    assert dump(dsn) == before
    await require_schema(database)  # workers go on beside a newer one


async def test_no_schema_and_an_older_one_are_told_apart(empty_dsn: str) -> None:
    connection = await connect(empty_dsn)
    assert await schema_version(connection) == 0
    with pytest.raises(
        SchemaMissing, match=r"no hybrid_runner schema: run `hybrid-runner migrate`"
    ):
        await require_schema(connection)
    await connection.close()


async def test_a_database_that_lacks_a_migration_is_refused_and_only_that_one_is_applied(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Migration(NEWEST + 1, "later", "CREATE TABLE hybrid_runner.later ()")
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), later))
    with pytest.raises(SchemaMissing, match=rf"version {NEWEST}, this version needs {NEWEST + 1}"):
        await require_schema(database)
    assert await migrate(database) == [later]
    await require_schema(database)


BEFORE_THE_SQUASH = """
    CREATE SCHEMA hybrid_runner;
    CREATE TABLE hybrid_runner.migrations (
        version integer PRIMARY KEY, name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
    INSERT INTO hybrid_runner.migrations (version, name)
    VALUES (1, 'jobs'), (2, 'archive'), (3, 'queues'), (4, 'ring'), (5, 'enqueue'), (6, 'operate'),
        (7, 'workers'), (8, 'doorbell')
"""


async def test_a_database_of_a_checkout_with_other_migrations_is_refused_with_a_way_out(
    empty_dsn: str,
) -> None:
    connection = await connect(empty_dsn)
    await connection.execute(BEFORE_THE_SQUASH)
    for refused in (migrate, require_schema, schema_version):
        with pytest.raises(SchemaUnreleased) as refusal:
            await refused(connection)
        assert "start anew with DROP SCHEMA hybrid_runner CASCADE" in str(refusal.value)
        assert "\n" not in str(refusal.value)
    assert (
        await connection.fetchval("SELECT to_regclass('hybrid_runner.jobs')") is None
    )  # it was left as it was
    await connection.execute("DROP SCHEMA hybrid_runner CASCADE")
    assert len(await migrate(connection)) == NEWEST
    await connection.close()


async def test_a_database_of_a_checkout_with_another_baseline_is_refused(
    database: Connection,
) -> None:
    await database.execute(
        "UPDATE hybrid_runner.migrations SET checksum = 'of an earlier text' WHERE version = 1"
    )
    for refused in (migrate, require_schema):
        with pytest.raises(SchemaUnreleased, match="its migration 1 is another one"):
            await refused(database)


async def test_a_runner_is_not_opened_on_such_a_database_and_callers_own_connections_are_theirs(
    dsn: str, database: Connection
) -> None:
    app = Runner(dsn)
    await database.execute("UPDATE hybrid_runner.migrations SET checksum = 'of an earlier text'")
    for refused in (app.open, partial(app.enqueue, "hello"), app.list_jobs, app.prune):
        with pytest.raises(SchemaUnreleased, match="start anew with DROP SCHEMA"):
            await refused()
    assert (await app.enqueue("hello", connection=database)).enqueued == "inserted"
    await database.execute("SET ROLE hybrid_runner_producer")
    await refuse_unreleased(database)  # a producer may not read the list


@pytest.fixture
def owner(databases: Databases) -> Iterator[str]:
    """A role that may do nothing in particular."""
    name = "hybrid_runner_test_owner"
    databases.connection.execute(f"CREATE ROLE {name} NOLOGIN")
    yield name
    databases.connection.execute(f"DROP ROLE {name}")


async def test_an_ordinary_role_that_owns_the_schema_can_migrate(
    owner: str, empty_dsn: str, dsn: str
) -> None:
    connection = await connect(empty_dsn)
    await connection.execute(
        f"CREATE SCHEMA hybrid_runner AUTHORIZATION {owner}; SET SESSION AUTHORIZATION {owner}"
    )
    assert len(await migrate(connection)) == NEWEST
    await _works(connection)
    await connection.execute("RESET SESSION AUTHORIZATION")
    assert dump(empty_dsn) == dump(dsn)
    await connection.execute(f"REASSIGN OWNED BY {owner} TO CURRENT_USER; DROP OWNED BY {owner}")
    await connection.close()


async def test_an_ordinary_role_without_a_schema_is_told_what_is_missing(
    owner: str, empty_dsn: str
) -> None:
    connection = await connect(empty_dsn)
    await connection.execute(f"SET SESSION AUTHORIZATION {owner}")
    with pytest.raises(DatabaseError, match="permission denied for database"):
        await migrate(connection)
    await connection.close()


GRANTED = """
SELECT DISTINCT a.grantee::regrole::text
FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
WHERE n.nspname LIKE 'hybrid_%' AND a.grantee <> n.nspowner
"""
MISSING = (
    "there is no role {}, so it was granted nothing: run deploy/roles.sql as the administrator"
)
GROUPS = {
    "hybrid_runner_producer",
    "hybrid_runner_worker",
    "hybrid_runner_reader",
    "hybrid_monitors_editor",
}


async def test_migrate_names_missing_roles_and_grants_when_they_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Roles belong to the whole server, so this one has a server of its own."""
    with embedded() as postgres:
        connection = await connect(postgres.dsn)
        await connection.execute(
            "CREATE ROLE owner LOGIN; CREATE SCHEMA hybrid_runner AUTHORIZATION owner;"
            f"GRANT CREATE ON DATABASE {urlsplit(postgres.dsn).path[1:]} TO owner;"
            "SET SESSION AUTHORIZATION owner"
        )
        assert len(await migrate(connection)) == NEWEST
        await install_monitors(connection)
        said = caplog.text
        for role in GROUPS:
            assert said.count(MISSING.format(role)) == 1
        await _works(connection)
        assert await migrate(connection) == []
        assert caplog.text == said
        assert await connection.fetch(GRANTED) == []
        await connection.execute("RESET SESSION AUTHORIZATION")
        await make_groups(connection)
        await connection.execute("SET SESSION AUTHORIZATION owner")
        assert await migrate(connection) == []
        assert {role for (role,) in await connection.fetch(GRANTED)} == GROUPS
        assert caplog.text == said
        await connection.close()


async def test_migrate_misses_no_roles_where_no_other_login_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with embedded() as postgres:
        connection = await connect(postgres.dsn)
        await migrate(connection)
        await install_monitors(connection)
        assert (
            await connection.fetch("SELECT FROM pg_roles WHERE rolname = ANY ($1)", list(GROUPS))
            == []
        )
        assert caplog.text == ""
        await connection.close()


PAUSE = "SELECT prosrc FROM pg_proc WHERE oid = 'hybrid_runner.pause'::regproc"
OTHER_PAUSE = """
CREATE OR REPLACE FUNCTION hybrid_runner.pause(queue text) RETURNS boolean
LANGUAGE sql AS 'SELECT true'
"""


def recorded(release: str) -> str:
    """The statement after which functions and grants are of that release, and of another text."""
    return record().replace(VERSION, release).replace(digest(), "another")


async def test_a_role_that_owns_nothing_migrates_while_there_is_nothing_to_do(
    owner: str, database: Connection
) -> None:
    await database.execute(f"GRANT hybrid_runner_reader TO {owner}; SET ROLE {owner}")
    assert await migrate(database) == []
    await database.execute("RESET ROLE")
    await database.execute(recorded(VERSION))
    await database.execute(f"SET ROLE {owner}")
    with pytest.raises(DatabaseError, match="migrate as the role that owns the schema"):
        await migrate(database)
    await database.execute("RESET ROLE")
    await database.execute(f"GRANT CREATE ON SCHEMA hybrid_runner TO {owner}; SET ROLE {owner}")
    with pytest.raises(
        DatabaseError, match="denied for table migrations: migrate as the role that owns"
    ):
        await migrate(database)
    await database.execute(f"RESET ROLE; DROP OWNED BY {owner}")


async def test_what_is_not_of_this_release_is_made_anew(database: Connection) -> None:
    before = await database.fetchval(PAUSE)
    for statement in (
        recorded(VERSION),
        recorded("0.0.9"),
        "COMMENT ON TABLE hybrid_runner.migrations IS 'what somebody else has to say'",
        "COMMENT ON TABLE hybrid_runner.migrations IS '[7]'",
        "COMMENT ON TABLE hybrid_runner.migrations IS NULL",
    ):
        await database.execute(OTHER_PAUSE)
        await database.execute(statement)
        assert await migrate(database) == []
        assert await database.fetchval(PAUSE) == before
    await database.execute(OTHER_PAUSE)
    assert await migrate(database) == []  # what was recorded is not compared with what is there
    assert await database.fetchval(PAUSE) == "SELECT true"


async def test_an_older_release_does_not_put_its_functions_in_place_of_newer_ones(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(OTHER_PAUSE)
    await database.execute(recorded("10.0.0"))
    assert await migrate(database) == []
    assert await database.fetchval(PAUSE) == "SELECT true"
    assert "functions are those of hybrid-runner 10.0.0: they stay" in caplog.text


async def test_a_worker_is_told_of_functions_of_an_older_release_and_not_of_newer_ones(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    for release in (VERSION, "10.0.0"):
        await database.execute(record() if release == VERSION else recorded(release))
        await require_schema(database)
    assert caplog.text == ""
    await database.execute(recorded("0.0.9"))
    await database.execute("SET ROLE hybrid_runner_worker")
    await require_schema(database)
    assert "they are of 0.0.9): run `hybrid-runner migrate`" in caplog.text


async def test_every_right_a_worker_needs_is_the_worker_roles(database: Connection) -> None:
    await database.execute("SET ROLE hybrid_runner_worker")
    await _works(database)


async def test_a_reader_reads_everything_and_changes_nothing(database: Connection) -> None:
    job = await ended(database)
    await database.execute("SET ROLE hybrid_runner_reader")
    view = await client_calls.get_job(database, job)
    assert view is not None
    for statement in (
        "DELETE FROM hybrid_runner.archive",
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('x')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.execute(statement)


async def test_a_worker_does_all_that_people_do(database: Connection) -> None:
    await database.execute("SET ROLE hybrid_runner_worker")
    job = await enqueue(database)
    assert await client_calls.pause_queue(database, "default")
    assert await client_calls.resume_queue(database, "default")
    assert await client_calls.cancel_job(database, job, None) == "cancelled"
    assert await client_calls.retry_job(database, job) == "queued"


async def _works(connection: Connection) -> None:
    job = await ended(connection)
    await enqueue(connection, key="second")
    [taken] = await claim(connection)
    assert await client_calls.cancel_job(connection, taken.id, None) == "requested"
    await worker_calls.make_archive_partitions(connection, 9)
    first = await living(connection)
    news = await told(connection, "worker-1", first, [(taken.id, taken.number)])
    assert [one for one in news if isinstance(one, CancelRequested)] == [CancelRequested(taken.id)]
    await worker_calls.retire_worker(connection, "worker-1", first, in_order=True)
    view = await client_calls.get_job(connection, job)
    assert view is not None
    assert view.result == "done"
