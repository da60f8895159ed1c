"""Reads the SQL files: inside the package when it is installed, in the checkout otherwise.

What is made on request alone has a part of its own: sql/monitors is laid out like sql.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).resolve().parent.parent


PARTS = ("", "monitors")
"""The folders in sql/ with migrations, functions and queries; "" is sql/ itself."""


class Migration(NamedTuple):
    """One step of the schema: its number, its name and its SQL."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Of its text: tells a released migration, which never changes, from an unreleased one."""
        return sha256(self.sql.encode()).hexdigest()[:16]


@cache
def sql_folder() -> Path:
    """The folder with `migrations/`, `functions/` and `queries/`."""
    for folder in (_PACKAGE / "sql", _PACKAGE.parent / "sql"):
        if (folder / "queries").is_dir():
            return folder
    raise FileNotFoundError(
        f"no sql/ folder beside {_PACKAGE}: the installation is damaged, install hybrid-runner"
        " again"
    )


@cache
def query(name: str) -> str:
    """The text of sql/queries/<name>.sql, or of the part that has a query of this name."""
    paths = [sql_folder() / part / "queries" / f"{name}.sql" for part in PARTS]
    found = next((path for path in paths if path.is_file()), paths[0])
    return found.read_text(encoding="utf-8")


@cache
def script(name: str, part: str = "") -> str:
    """The text of sql/<name>.sql, or of sql/<part>/<name>.sql."""
    return (sql_folder() / part / f"{name}.sql").read_text(encoding="utf-8")


@cache
def template(name: str) -> str:
    """The text of sql/sources/<name>.sql, with its places."""
    return (sql_folder() / "sources" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def migrations(part: str = "") -> tuple[Migration, ...]:
    """All migrations in order; their numbers have no gap."""
    found = []
    files = sorted((sql_folder() / part / "migrations").glob("*.sql"))
    for number, path in enumerate(files, start=1):
        match = re.fullmatch(r"(\d{4})_(\w+)", path.stem)
        if match is None or int(match[1]) != number:
            raise FileNotFoundError(
                f"{path.name} is not migration {number:04d}: the installation is damaged"
            )
        found.append(Migration(number, match[2], path.read_text(encoding="utf-8")))
    return tuple(found)


@cache
def functions(part: str = "") -> tuple[tuple[str, str], ...]:
    """The name and the SQL of every function, each of which replaces one of the same signature."""
    files = sorted((sql_folder() / part / "functions").glob("*.sql"))
    return tuple((path.stem, path.read_text(encoding="utf-8")) for path in files)
