"""Brings a database to this version's schema: forward only, in one transaction. Many processes may
do so at once.
"""

from __future__ import annotations

from typing import NamedTuple

import asyncpg

from hybrid_runner.errors import SchemaMissing, SchemaTooNew, SchemaUnreleased
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.storage.failures import needs_owner, translate
from hybrid_runner.storage.installed import needs_functions, record, warn_of_older_functions
from hybrid_runner.storage.queries import Migration, functions, migrations, query, script

# Everyone who migrates waits here; the number only has to be the same everywhere.
LOCK = "SELECT pg_advisory_xact_lock(7220483551)"
RECORD = (
    "INSERT INTO hybrid_runner.migrations (version, name, checksum) VALUES ({version}, '{name}',"
    " '{checksum}')"
)
UNCHECKED = "SET LOCAL check_function_bodies = off"
"""Functions come in the order of their names, so one may name another that comes after it."""
_UNDEFINED = ("3F000", "42P01")
_FORBIDDEN = "42501"


class Applied(NamedTuple):
    """A migration that a database has, as sql/queries/applied_migrations.sql returns it."""

    version: int
    name: str
    checksum: str | None


async def migrate(connection: Connection) -> list[Migration]:
    """Apply the migrations that are missing, then all functions and grants unless those of this
    release are there.

    The answer is the migrations that were missing.
    """
    try:
        async with connection.transaction():
            await connection.execute(LOCK)
            await connection.execute(script("bootstrap"))
            at = _version_of(await _applied(connection))
            refuse_newer(at)
            if _missing(at) or await needs_functions(connection):
                for _, sql in _steps(at):
                    await connection.execute(sql)
    except asyncpg.InsufficientPrivilegeError as error:
        raise needs_owner(error) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error
    return _missing(at)


async def schema_version(on: Fetches) -> int:
    """The newest migration in the database; 0 when there is no schema."""
    try:
        return _version_of(await _applied(on))
    except SchemaMissing:
        return 0
    except asyncpg.PostgresError as error:
        if getattr(error, "sqlstate", "") in _UNDEFINED:
            return 0
        raise translate(error) from error
    except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


async def _applied(on: Fetches) -> list[Applied]:
    return [Applied(*row) for row in await on.fetch(query("applied_migrations"))]


async def require_schema(on: Fetches) -> None:
    """SchemaMissing unless the database has every migration that this version needs."""
    at, needed = await schema_version(on), migrations()[-1].version
    if at == 0:
        raise SchemaMissing(
            "the database has no hybrid_runner schema: run `hybrid-runner migrate` with the"
            " same DSN"
        )
    if at < needed:
        raise SchemaMissing(
            f"the database's schema is version {at}, this version needs {needed}: run"
            " `hybrid-runner migrate` with the same DSN"
        )
    try:
        await warn_of_older_functions(on)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


async def refuse_unreleased(on: Fetches) -> None:
    """SchemaUnreleased for a database of an unreleased checkout, whose tables are others. A role
    that may not read the list of migrations, such as a producer's, is not refused.
    """
    try:
        _version_of(await _applied(on))
    except asyncpg.PostgresError as error:
        if getattr(error, "sqlstate", "") not in (*_UNDEFINED, _FORBIDDEN):
            raise translate(error) from error
    except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


def _version_of(applied: list[Applied]) -> int:
    """The newest version; SchemaUnreleased when this version has another migration under the number
    of one of them.
    """
    ours = {step.version: (step.name, step.checksum) for step in migrations()}
    for theirs in applied:
        if ours.get(theirs.version, theirs[1:]) != theirs[1:]:
            raise SchemaUnreleased(
                "the database was made by an unreleased hybrid-runner (its migration"
                f" {theirs.version} is another one): start anew with DROP SCHEMA hybrid_runner"
                " CASCADE, which deletes its jobs, or, if it is the embedded one, remove the"
                " folder that holds it"
            )
    return applied[-1].version if applied else 0


def refuse_newer(at: int) -> None:
    """SchemaTooNew when the database is ahead of this code."""
    known = migrations()[-1].version
    if at > known:
        raise SchemaTooNew(
            f"the database's schema is version {at}, this version knows {known}: upgrade"
            " hybrid-runner"
        )


def as_script(at: int = 0) -> str:
    """What `migrate` would run from version `at` on, for psql."""
    refuse_newer(at)
    steps = [("lock", LOCK), ("bootstrap", script("bootstrap")), *_steps(at)]
    return (
        "BEGIN;\n"
        + "".join(f"-- ---- {title}\n{sql.rstrip().rstrip(';')};\n\n" for title, sql in steps)
        + "COMMIT;\n"
    )


def _steps(at: int) -> list[tuple[str, str]]:
    """What brings a database from version `at` to this one, in order, each with a title."""
    steps = []
    for step in _missing(at):
        title = f"{step.version:04d} {step.name}"
        steps += [(title, step.sql), (f"{title}, recorded", _record(step))]
    steps.append(("functions", UNCHECKED))
    steps += [(f"function {name}", sql) for name, sql in functions()]
    return [
        *steps,
        ("partitions", script("partitions")),
        ("grants", script("grants")),
        ("installed", record()),
    ]


def _missing(at: int) -> list[Migration]:
    return [step for step in migrations() if step.version > at]


def _record(step: Migration) -> str:
    return RECORD.format(version=step.version, name=step.name, checksum=step.checksum)
