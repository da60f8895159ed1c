from __future__ import annotations

import asyncio

import pytest

from hybrid_runner.errors import DatabaseError, SchemaMissing, SchemaTooNew, SchemaUnreleased
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.storage.monitor_schema import (
    PART,
    install_monitors,
    monitors_version,
    require_monitors,
)
from hybrid_runner.storage.queries import functions, migrations, query, sql_folder
from tools import schema_dump, sql_lint

QUERIES = sorted((sql_folder() / PART / "queries").glob("*.sql"))
NEWEST = migrations(PART)[-1].version
FUNCTIONS = (
    "SELECT proname::text FROM pg_proc WHERE pronamespace = 'hybrid_monitors'::regnamespace"
    ' ORDER BY proname COLLATE "C"'
)
STRANGER = """
CREATE ROLE {0};
CREATE SCHEMA hybrid_monitors AUTHORIZATION {0};
CREATE TABLE hybrid_monitors.migrations (version integer, name text, checksum text);
ALTER TABLE hybrid_monitors.migrations OWNER TO {0};
"""


def dumped(dsn: str) -> str:
    return schema_dump.dump(dsn, "hybrid_monitors")


async def test_a_query_of_monitors_says_which_parameters_it_takes(undone: Connection) -> None:
    short = {"integer": "int4", "bigint": "int8"}
    for path in QUERIES:
        header = sql_lint.read_header(path)
        statement = await undone.prepare(query(path.stem))
        seen = [short.get(kind.name, kind.name) for kind in statement.get_parameters()]
        assert [kind for kind, _ in header.parameters] == seen, path.stem
        assert {column.type.schema for column in statement.get_attributes()} <= {"pg_catalog"}


async def test_every_function_of_monitors_is_one_that_postgres_can_read(
    monitored: Connection,
) -> None:
    """Installing does not have them checked, since one may name another that comes after it."""
    for _, sql in functions(PART):
        await monitored.execute(sql)


async def test_no_function_of_monitors_is_left_that_has_no_file(undone: Connection) -> None:
    rows = await undone.fetch(FUNCTIONS)
    assert [row[0] for row in rows] == sorted(name for name, _ in functions(PART))


async def test_the_schema_of_monitors_is_the_sum_of_its_migrations(
    monitors_dsn: str, monitored: Connection
) -> None:
    if str(monitored.get_server_version().major) != schema_dump.MAJOR:
        pytest.skip(f"SKIPPED: schema.sql is worded by PostgreSQL {schema_dump.MAJOR}")
    assert dumped(monitors_dsn) == schema_dump.TARGETS["hybrid_monitors"].read_text("utf-8")


async def test_where_nobody_asked_for_monitors_migrating_makes_none(
    dsn: str, database: Connection
) -> None:
    await migrate(database)
    assert await database.fetchval("SELECT to_regnamespace('hybrid_monitors')") is None
    assert (
        await database.fetchval("SELECT count(*) FROM hybrid_runner.duties WHERE name = 'monitors'")
        == 0
    )
    assert await monitors_version(database) == 0
    with pytest.raises(SchemaMissing, match="hybrid-runner monitors migrate"):
        await require_monitors(database)


async def test_monitors_need_hybrid_runner_first(empty_dsn: str) -> None:
    connection = await connect(empty_dsn)
    with pytest.raises(SchemaMissing, match="hybrid-runner migrate"):
        await install_monitors(connection)
    await connection.close()


async def test_a_second_installation_changes_nothing(
    monitors_dsn: str, monitored: Connection
) -> None:
    before = dumped(monitors_dsn)
    assert await install_monitors(monitored) == []
    assert await migrate(monitored) == []
    assert dumped(monitors_dsn) == before
    await require_monitors(monitored)


async def test_migrating_brings_installed_monitors_up_to_date(
    monitors_dsn: str, monitored: Connection
) -> None:
    before = dumped(monitors_dsn)
    await monitored.execute("DROP FUNCTION hybrid_monitors.ask_poll")
    await monitored.execute("COMMENT ON TABLE hybrid_monitors.migrations IS 'of another release'")
    await migrate(monitored)
    assert dumped(monitors_dsn) == before


async def test_two_that_install_at_once_both_end_well(dsn: str) -> None:
    connections = [await connect(dsn) for _ in range(2)]
    applied = await asyncio.gather(*map(install_monitors, connections))
    assert sorted(len(each) for each in applied) == [0, NEWEST]
    for connection in connections:
        await connection.close()


async def test_installing_is_done_whole_or_not_at_all(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid_runner.storage import monitor_schema  # noqa: PLC0415

    monkeypatch.setattr(
        monitor_schema, "functions", lambda part: (*functions(part), ("x", "SELECT nothing()"))
    )
    with pytest.raises(DatabaseError, match="nothing"):
        await install_monitors(database)
    assert await database.fetchval("SELECT to_regnamespace('hybrid_monitors')") is None


async def test_a_newer_and_an_unreleased_schema_are_refused_in_one_line(
    monitored: Connection,
) -> None:
    table = "hybrid_monitors.migrations"
    await monitored.execute(f"INSERT INTO {table} (version, name, checksum) VALUES (99, 'x', '')")
    for act in (install_monitors, migrate, require_monitors):
        with pytest.raises(SchemaTooNew, match="monitors are version 99"):
            await act(monitored)
    await monitored.execute(f"DELETE FROM {table} WHERE version = 99")
    await monitored.execute(f"UPDATE {table} SET checksum = 'other'")
    with pytest.raises(SchemaUnreleased, match="DROP SCHEMA hybrid_monitors CASCADE"):
        await install_monitors(monitored)


async def test_a_schema_of_a_stranger_is_left_alone(database: Connection) -> None:
    """Whoever may make schemas could else run what he likes with the rights of whoever migrates."""
    role = f"stranger_{await database.fetchval('SELECT pg_backend_pid()')}"
    await database.execute(STRANGER.format(role))
    await database.execute("COMMENT ON TABLE hybrid_runner.migrations IS 'of another release'")
    await migrate(database)
    assert await monitors_version(database) == 0
    with pytest.raises(DatabaseError, match=f"belongs to role {role}"):
        await install_monitors(database)
    await database.execute(f"DROP SCHEMA hybrid_monitors CASCADE; DROP ROLE {role}")


async def test_only_the_owner_of_hybrid_runner_installs_monitors(database: Connection) -> None:
    role = f"plain_{await database.fetchval('SELECT pg_backend_pid()')}"
    name = await database.fetchval("SELECT quote_ident(current_database())")
    await database.execute(f"CREATE ROLE {role}; GRANT CREATE ON DATABASE {name} TO {role}")
    await database.execute(f"GRANT hybrid_runner_worker TO {role}; SET ROLE {role}")
    with pytest.raises(DatabaseError, match="as the role that owns the schema hybrid_runner"):
        await install_monitors(database)
    await database.execute("RESET ROLE")
    await database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
