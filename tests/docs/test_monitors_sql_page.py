"""docs/monitors-sql.md is compared with a real database."""

from __future__ import annotations

import itertools
import re

from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT, blocks

PAGE = (ROOT / "docs" / "monitors-sql.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`: .*?\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
SHORT = {"timestamp with time zone": "timestamptz"}
COLUMNS = (
    "SELECT c.relname::text AS name, a.attname::text AS column, format_type(a.atttypid, NULL) AS"
    " type FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.relnamespace ="
    " 'hybrid_monitors'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
RELATIONS = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'hybrid_monitors'::regnamespace AND"
    " relkind::text = $1"
)
FUNCTIONS = (
    "SELECT p.proname::text AS name, p.proargnames AS arguments, array_agg(DISTINCT"
    " a.grantee::regrole::text) FILTER (WHERE a.grantee <> p.proowner) AS roles FROM pg_proc AS p"
    " CROSS JOIN LATERAL aclexplode(p.proacl) AS a WHERE p.pronamespace ="
    " 'hybrid_monitors'::regnamespace GROUP BY p.oid"
)


def names_after(head: str) -> set[str]:
    """What the first column of the table with this head names."""
    lines = PAGE.partition(f"{head}\n")[2].split("\n")[1:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return {row.split("|")[1].strip().strip("`") for row in rows}


async def test_every_table_and_column_is_on_the_page(monitored: Connection) -> None:
    actual: dict[str, list[tuple[str, str]]] = {}
    for row in await monitored.fetch(COLUMNS):
        kind = SHORT.get(row["type"], row["type"])
        actual.setdefault(row["name"], []).append((row["column"], kind))
    written = {
        table: re.findall(r"^\| `(\w+)` \| ([\w\[\]]+) \|", text, re.MULTILINE)
        for table, text in SECTIONS.items()
    }
    assert {name: sorted(columns) for name, columns in written.items()} == {
        name: sorted(columns) for name, columns in actual.items()
    }


async def test_every_view_and_sequence_is_on_the_page(monitored: Connection) -> None:
    for kind, head in (("v", "| view | what it shows |"), ("S", "| sequence | what it counts |")):
        assert names_after(head) == {row[0] for row in await monitored.fetch(RELATIONS, kind)}


async def test_functions_that_somebody_may_call_are_on_the_page(monitored: Connection) -> None:
    rows = [row for row in await monitored.fetch(FUNCTIONS) if row["roles"]]
    headings = re.findall(r"^### `(\w+)\((.*)\)`$", PAGE, re.MULTILINE)
    for_you = {name: arguments.split(", ") if arguments else [] for name, arguments in headings}
    editors = {
        row["name"]: list(row["arguments"] or [])
        for row in rows
        if "hybrid_monitors_editor" in row["roles"]
    }
    del editors["service_columns_of"]  # a part of two others that run with their caller's rights
    assert for_you == editors
    workers = {row["name"] for row in rows if "hybrid_runner_worker" in row["roles"]}
    assert names_after("| function | what it does |") == workers - editors.keys()


async def test_the_statements_of_the_page_run(monitored: Connection) -> None:
    for block in blocks("docs/monitors-sql.md", "sql"):
        await monitored.execute(block.text)
