"""Reads the SQL files: inside the package when it is installed, in the checkout otherwise."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).resolve().parent.parent


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
    """The text of sql/queries/<name>.sql."""
    return (sql_folder() / "queries" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def script(name: str) -> str:
    """The text of sql/<name>.sql."""
    return (sql_folder() / f"{name}.sql").read_text(encoding="utf-8")


@cache
def template(name: str) -> str:
    """The text of sql/sources/<name>.sql, with its places."""
    return (sql_folder() / "sources" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations in order; their numbers have no gap."""
    found = []
    for number, path in enumerate(sorted((sql_folder() / "migrations").glob("*.sql")), start=1):
        match = re.fullmatch(r"(\d{4})_(\w+)", path.stem)
        if match is None or int(match[1]) != number:
            raise FileNotFoundError(
                f"{path.name} is not migration {number:04d}: the installation is damaged"
            )
        found.append(Migration(number, match[2], path.read_text(encoding="utf-8")))
    return tuple(found)


@cache
def functions() -> tuple[tuple[str, str], ...]:
    """The name and the SQL of every function, each of which replaces one of the same signature."""
    files = sorted((sql_folder() / "functions").glob("*.sql"))
    return tuple((path.stem, path.read_text(encoding="utf-8")) for path in files)
