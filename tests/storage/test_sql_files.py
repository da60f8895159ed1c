from __future__ import annotations

import re
from pathlib import Path

import asyncpg
import pytest

from hybrid_runner import NewJob, Runner
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.queries import query, sql_folder
from tools import schema_dump, sql_lint

QUERIES = sorted((sql_folder() / "queries").glob("*.sql"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
async def test_a_querys_header_names_the_parameters_postgres_sees(
    path: Path, unchanged: Connection
) -> None:
    header = sql_lint.read_header(path)
    statement = await unchanged.prepare(query(path.stem))
    seen = [_name(kind.name) for kind in statement.get_parameters()]
    assert [kind for kind, _ in header.parameters] == seen


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
async def test_a_querys_answer_has_types_that_every_client_knows(
    path: Path, unchanged: Connection
) -> None:
    """Others would be looked up first, by statements that leave a setting behind in a pooler's
    session.
    """
    statement = await unchanged.prepare(query(path.stem))
    assert {
        (column.name, column.type.schema)
        for column in statement.get_attributes()
        if column.type.schema != "pg_catalog"
    } == set()


async def test_schema_sql_is_the_sum_of_the_migrations(dsn: str) -> None:
    if (await _major(dsn)) != schema_dump.MAJOR:
        pytest.skip(f"SKIPPED: schema.sql is worded by PostgreSQL {schema_dump.MAJOR}")
    assert schema_dump.dump(dsn) == (sql_folder() / "schema.sql").read_text(encoding="utf-8")


def test_a_dump_names_no_day_and_no_server() -> None:
    text = (sql_folder() / "schema.sql").read_text(encoding="utf-8")
    assert "archive_20" not in text
    assert "Dumped" not in text
    assert "CREATE TABLE hybrid_runner.jobs" in text
    assert "GRANT INSERT(payload) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer" in text


def test_one_function_alone_ends_jobs() -> None:
    """What is to happen whenever a job ends has one place; and so has what the archive is given."""

    def files_with(words: str) -> set[str]:
        return {
            path.stem
            for path in sql_folder().rglob("*.sql")
            if path.name != schema_dump.TARGET.name
            and re.search(words, path.read_text(encoding="utf-8"))
        }

    assert files_with(r"INSERT INTO hybrid_runner\.archive\b") == {"end_jobs"}
    assert files_with(r"DELETE FROM hybrid_runner\.jobs\b") == {"take_ended"}
    assert files_with(r"FROM hybrid_runner\.take_ended\(") == {"end_jobs"}


def test_the_sql_files_have_no_complaints() -> None:
    assert [str(complaint) for complaint in sql_lint.check_everything()] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- look: look.\nselect 1\n", "keyword select is written SELECT"),
        ("-- look: look.\nSELECT * FROM hybrid_runner.jobs\n", "SELECT names its columns, never *"),
        ("-- look: look.\nSELECT now()::timestamp\n", "times are timestamptz, always"),
        ("-- peek: look.\nSELECT 1\n", "the header names peek, the file look"),
        ("SELECT 1\n", 'the first line is "-- look: what it does"'),
        (
            "-- look: look.\n-- $1 int8 id\nSELECT 1\n",
            "the header declares $1, the statement uses no parameters",
        ),
        ("-- look: look.\nSELECT $1\n", "the header declares no parameters, the statement uses $1"),
        (
            "-- look: look.\n-- $2 int8 id\nSELECT $1\n",
            'parameter 1 is written "$1 type name", not "$2 int8 id"',
        ),
        (
            "-- look: look.\n-- by the way\nSELECT 1\n",
            'after the first line come "-- $1 type name, …" and "-- odd: …" only',
        ),
        ("-- look: look.\nSELECT 1;\n", "one statement, no semicolon"),
        (f"-- look: look {'on ' * 40}.\nSELECT 1\n", "a comment has at most 100 columns"),
        ("-- look: look.\nSELECT 1", "a file ends with one line break"),
        (
            "-- look: look.\nSELECT pg_try_advisory_lock(7)\n",
            "any login can take an advisory lock: lock a row of hybrid_runner.locks",
        ),
    ],
)
def test_the_linter_complains(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "queries" / "look.sql"
    path.parent.mkdir()
    path.write_text(text)
    assert [found.what for found in sql_lint.check_file(path)] == [complaint]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "-- look: look.\nCREATE FUNCTION hybrid_runner.look() RETURNS void\nPATH\nAS $$\n$$;\n",
            "it is one CREATE OR REPLACE",
        ),
        (
            (
                "-- look: look.\nCREATE OR REPLACE FUNCTION hybrid_runner.see() RETURNS void\nPATH"
                "\nAS $$\n$$;\n"
            ),
            "it is one CREATE OR REPLACE",
        ),
        (
            (
                "-- look: look.\nCREATE OR REPLACE FUNCTION hybrid_runner.look() RETURNS void\nPATH"
                "\nAS $$\n$$;\nLOCK x;\n"
            ),
            "nothing comes after",
        ),
        (
            (
                "-- see: look.\nCREATE OR REPLACE FUNCTION hybrid_runner.look() RETURNS void\nPATH"
                "\nAS $$\n$$;\n"
            ),
            "the first line is",
        ),
        (
            (
                "-- look: look.\nCREATE OR REPLACE FUNCTION hybrid_runner.look() RETURNS void\nAS"
                " $$\nSELECT now();\n$$;\n"
            ),
            "a function has SET search_path = pg_catalog, pg_temp",
        ),
    ],
)
def test_a_function_file_makes_that_function_and_nothing_else(
    text: str, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "functions" / "look.sql"
    path.parent.mkdir()
    path.write_text(text.replace("PATH", "SET search_path = pg_catalog, pg_temp"))
    [found] = sql_lint.check_file(path)
    assert found.what.startswith(complaint)


@pytest.mark.parametrize("name", sorted(sql_lint.ON_CALLERS_CONNECTIONS))
def test_a_statement_on_a_callers_connection_says_where_each_function_is(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "queries" / f"{name}.sql"
    path.parent.mkdir()
    path.write_text(
        f"-- {name}: look.\nSELECT pg_catalog.now(), coalesce(clock_timestamp(), NULL)\n"
    )
    assert [found.what for found in sql_lint.check_file(path)] == [
        "it runs on callers' connections: pg_catalog.clock_timestamp"
    ]


async def test_only_those_statements_are_sent_on_a_callers_connection(dsn: str) -> None:
    """Whatever runs on another has a search path of ours."""
    sent: list[str] = []
    connection = await asyncpg.connect(dsn)
    connection.add_query_logger(lambda logged: sent.append(logged.query))
    app = Runner(dsn)
    await app.enqueue("one", {}, connection=connection)
    await app.enqueue_many("many", [{}, {}], connection=connection)
    await app.enqueue_many("many", [{}, {}], key=lambda _: "one", connection=connection)
    await client_calls.enqueue_many(connection, [NewJob("one"), NewJob("two")], "exists")
    await app.signal("one", connection=connection)
    await connection.close()
    await app.close()
    by_complete = {"finish_jobs", "finish_followed_jobs"}
    texts = {query(name) for name in sql_lint.ON_CALLERS_CONNECTIONS - by_complete}
    assert {text for text in sent if "hybrid_runner" in text} == texts


def test_the_linter_ignores_words_in_comments_and_literals(tmp_path: Path) -> None:
    path = tmp_path / "queries" / "look.sql"
    path.parent.mkdir()
    path.write_text(
        "-- look: select where from.\nSELECT 'select * from; $1' AS said -- and update\n"
    )
    assert list(sql_lint.check_file(path)) == []


def _name(kind: str) -> str:
    return {"integer": "int4", "bigint": "int8"}.get(kind, kind)


async def _major(dsn: str) -> str:
    from hybrid_runner.storage.connections.connection import connect  # noqa: PLC0415

    connection = await connect(dsn)
    version = str(connection.get_server_version().major)
    await connection.close()
    return version
