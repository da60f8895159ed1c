"""docs/sql.md is compared with a real database."""

from __future__ import annotations

import itertools
import re

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT, blocks

PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
FUNCTIONS = (
    "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'hybrid_runner'::regnamespace"
)
INTERVAL = "SELECT $1::text::interval"
SHORT = {"timestamp with time zone": "timestamptz"}


def documented(table: str) -> list[tuple[str, str]]:
    """Name and type of each column on the page."""
    return re.findall(r"^\| `(\w+)` \| ([\w.\[\]]+) \|", SECTIONS[table], re.MULTILINE)


async def actual(database: Connection, table: str) -> set[tuple[str, str]]:
    """Name and type of each column in the database."""
    rows = await database.fetch(
        "SELECT attname, replace(format_type(atttypid, NULL), 'hybrid_runner.', '') AS type FROM pg_attribute "
        "WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped",
        f"hybrid_runner.{table}",
    )
    return {(row["attname"], SHORT.get(row["type"], row["type"])) for row in rows}


def table_after(section: str, *heads: str) -> list[list[str]]:
    """The rows of the table with these heads, without marks."""
    head = "| " + " | ".join(heads) + " |\n"
    lines = section.partition(head)[2].split("\n")[1:]
    rows = [
        line.strip("|").split("|")
        for line in itertools.takewhile(lambda line: line.startswith("|"), lines)
    ]
    return [[cell.strip().strip("`") for cell in row] for row in rows]


async def names_of(database: Connection, *kinds: str) -> set[str]:
    """Relations of these kinds, without partitions."""
    rows = await database.fetch(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'hybrid_runner'::regnamespace "
        "AND relkind::text = ANY ($1) AND NOT relispartition",
        kinds,
    )
    return {row[0] for row in rows}


async def test_every_table_view_and_sequence_is_on_the_page(unchanged: Connection) -> None:
    functions = {row[0] for row in await unchanged.fetch(FUNCTIONS)}
    assert SECTIONS.keys() - functions == await names_of(unchanged, "r", "p")
    assert {row[0] for row in table_after(PAGE, "view", "what it shows")} == await names_of(
        unchanged, "v"
    )
    assert {row[0] for row in table_after(PAGE, "sequence", "what it counts")} == await names_of(
        unchanged, "S"
    )


async def test_the_rows_that_are_there_from_the_beginning_are_the_documented_ones(
    unchanged: Connection,
) -> None:
    for table, columns in (("retention", ("state", "kind", "keep")), ("duties", ("name", "every"))):
        heads = [f"`{column}`" for column in columns]
        rows = table_after(SECTIONS[table], *heads) or table_after(
            SECTIONS[table], *heads, "what it is"
        )
        there = await unchanged.fetch(f"SELECT {', '.join(columns)} FROM hybrid_runner.{table}")
        written = {
            tuple(row[: len(columns) - 1]): await unchanged.fetchval(
                INTERVAL, row[len(columns) - 1]
            )
            for row in rows
        }
        assert written == {tuple(row)[:-1]: row[-1] for row in there}


@pytest.mark.parametrize(
    "table",
    [
        "jobs",
        "queues",
        "workers",
        "retention",
        "taken_keys",
        "duties",
        "unreported_ends",
        "archive_scans",
        "xid_history",
        "locks",
        "id_history",
        "migrations",
    ],
)
async def test_the_columns_of_a_table_are_the_documented_ones(
    unchanged: Connection, table: str
) -> None:
    assert set(documented(table)) == await actual(unchanged, table)


async def test_the_archive_has_the_columns_of_jobs_and_the_documented_two(
    unchanged: Connection,
) -> None:
    assert {*documented("jobs"), *documented("archive")} == await actual(unchanged, "archive")
    assert await actual(unchanged, "archive") == await actual(unchanged, "all_jobs")


async def test_the_functions_and_their_arguments_are_the_documented_ones(
    unchanged: Connection,
) -> None:
    rows = await unchanged.fetch(
        "SELECT proname, proargnames, proargmodes FROM pg_proc "
        "WHERE pronamespace = 'hybrid_runner'::regnamespace AND prorettype <> 'trigger'::regtype"
    )
    functions = {
        row["proname"]: [
            name
            for place, name in enumerate(row["proargnames"] or ())
            if not row["proargmodes"] or row["proargmodes"][place] in (b"i", b"v")
        ]
        for row in rows
    }
    headings = re.findall(r"^### `(\w+)\((.*)\)`$", PAGE, re.MULTILINE)
    assert {
        name: arguments.split(", ") if arguments else [] for name, arguments in headings
    } == functions


async def test_the_producers_columns_are_those_it_may_write(unchanged: Connection) -> None:
    rows = await unchanged.fetch(
        "SELECT column_name FROM information_schema.column_privileges "
        "WHERE grantee = 'hybrid_runner_producer' AND table_name = 'jobs' AND privilege_type = 'INSERT'"
    )
    written = re.findall(r"^\| `(\w+)` \| [\w.]+ \| producer", SECTIONS["jobs"], re.MULTILINE)
    assert {row["column_name"] for row in rows} == set(written)


async def test_the_statements_of_the_page_run(database: Connection) -> None:
    for block in blocks("docs/sql.md", "sql"):
        await database.execute(block.text)
