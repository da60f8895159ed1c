"""Brings a database to this version's schema: forward only, in one transaction. Many processes may
do so at once.
"""

from __future__ import annotations

from typing import NamedTuple

import asyncpg

from hybrid_runner.errors import DatabaseError, SchemaMissing, SchemaTooNew, SchemaUnreleased
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.storage.failures import needs_owner, translate
from hybrid_runner.storage.installed import (
    needs_functions,
    record,
    warn_of_missing_roles,
    warn_of_older_functions,
)
from hybrid_runner.storage.lock_waits import LONGEST, Connects, until_locks_are_free
from hybrid_runner.storage.monitor_schema import update_monitors
from hybrid_runner.storage.queries import Migration, functions, migrations, query, script

RECORD = (
    "INSERT INTO hybrid_runner.migrations (version, name, checksum) VALUES ({version}, '{name}',"
    " '{checksum}')"
)
UNCHECKED = "SET LOCAL check_function_bodies = off"
"""Functions come in the order of their names, so one may name another that comes after it."""
_UNDEFINED = ("3F000", "42P01")
_FORBIDDEN = "42501"


class Found(NamedTuple):
    """What the catalogue says of the schema, as sql/queries/find_schema.sql returns it."""

    is_there: bool
    is_plain: bool
    stranger: str | None


class Applied(NamedTuple):
    """A migration that a database has, as sql/queries/applied_migrations.sql returns it."""

    version: int
    name: str
    checksum: str | None


async def migrate(
    connection: Connection, connects: Connects | None = None, *, longest: float = LONGEST
) -> list[Migration]:
    """Apply the migrations that are missing, then all functions and grants unless those of this
    release are there. `connects` opens a second connection, to see who holds a lock.

    The answer is the migrations that were missing.
    """
    warn_of_missing_roles(connection)
    try:
        return await until_locks_are_free(
            lambda: _migrate(connection), connection, connects, longest=longest
        )
    except asyncpg.InsufficientPrivilegeError as error:
        raise needs_owner(error) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


async def _migrate(connection: Connection) -> list[Migration]:
    async with connection.transaction(isolation="read_committed"):
        await connection.execute(script("begin"))
        missing: list[Migration] = []
        if not await _is_there(connection, to_migrate=True) or await _todo(connection) is not None:
            await connection.execute(script("bootstrap"))
            # Asked again behind the lock: somebody else may have migrated meanwhile.
            if (at := await _todo(connection)) is not None:
                for _, sql in _steps(at):
                    await connection.execute(sql)
                missing = _missing(at)
        await update_monitors(connection)
    return missing


async def _todo(connection: Connection) -> int | None:
    """The version to go on from; None when there is nothing to do."""
    at = _version_of(await _read_applied(connection))
    refuse_newer(at)
    return at if _missing(at) or await needs_functions(connection) else None


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
    return await _read_applied(on) if await _is_there(on) else []


async def _read_applied(on: Fetches) -> list[Applied]:
    return [Applied(*row) for row in await on.fetch(query("applied_migrations"))]


async def _is_there(on: Fetches, *, to_migrate: bool = False) -> bool:
    """Whether there is a list of migrations; DatabaseError if it was so made that code of its owner
    runs with the rights of whoever reads it, or writes to it.
    """
    rows = await on.fetch(query("find_schema"))
    found = Found(*rows[0]) if rows else Found(is_there=False, is_plain=True, stranger=None)
    if to_migrate and found.stranger is not None:
        raise DatabaseError(
            f"the schema hybrid_runner belongs to role {found.stranger}, who would get the rights"
            f" of this superuser: log in as {found.stranger}, or, if it is not yours, drop it"
        )
    if not found.is_plain:
        raise DatabaseError(
            "hybrid_runner.migrations is not the table that `hybrid-runner migrate` makes: drop the"
            " schema hybrid_runner, if it is not yours"
        )
    return found.is_there


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
    steps = [("bootstrap", script("bootstrap")), *_steps(at)]
    return (
        f"BEGIN ISOLATION LEVEL READ COMMITTED;\n{script('begin')}\n"
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
