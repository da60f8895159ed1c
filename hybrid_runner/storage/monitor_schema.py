"""Makes the schema hybrid_monitors where somebody asks for it, and brings it to this version where
it is: forward only, in one transaction, as migrations.py does for hybrid_runner.
"""

from __future__ import annotations

import logging

import asyncpg

from hybrid_runner.errors import SchemaMissing, SchemaTooNew, SchemaUnreleased
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches, fetch
from hybrid_runner.storage.failures import needs_owner, translate
from hybrid_runner.storage.installed import read_installed, record, warn_of_missing_roles
from hybrid_runner.storage.lock_waits import LONGEST, Connects, until_locks_are_free
from hybrid_runner.storage.queries import Migration, functions, migrations, query, script
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.storage")

PART = "monitors"
UNCHECKED = "SET LOCAL check_function_bodies = off"
_RECORD = "INSERT INTO hybrid_monitors.migrations (version, name, checksum) VALUES ($1, $2, $3)"


async def install_monitors(
    connection: Connection, connects: Connects | None = None, *, longest: float = LONGEST
) -> list[Migration]:
    """Make the schema of monitors, or bring it to this version; the migrations that were missing.

    hybrid_runner has to be there already, and this role has to own it.
    """
    warn_of_missing_roles(connection)
    try:
        return await until_locks_are_free(
            lambda: _install(connection), connection, connects, longest=longest
        )
    except asyncpg.InsufficientPrivilegeError as error:
        raise needs_owner(error) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


async def update_monitors(connection: Connection) -> list[Migration]:
    """The same where they are installed, within the caller's transaction; elsewhere nothing."""
    rows = await connection.fetch(query("find_monitors"))
    if not rows:
        return []
    if not rows[0]["is_ours"]:
        log.warning(
            "the schema hybrid_monitors belongs to another role than hybrid_runner: it is left as"
            " it is; if it is not yours, drop it",
            extra=log_event("schema.monitors_of_another_role"),
        )
        return []
    return await _apply(connection) if await _needs_change(connection) else []


async def monitors_version(on: Fetches) -> int:
    """The newest migration of monitors in the database; 0 where they are not installed."""
    rows = await fetch(on, "find_monitors")
    if not rows or not rows[0]["is_ours"]:
        return 0
    return _version_of(await fetch(on, "monitors_applied"))


async def require_monitors(on: Fetches) -> None:
    """SchemaMissing unless monitors are installed in the version that this one needs."""
    at, needed = await monitors_version(on), migrations(PART)[-1].version
    if at == 0:
        raise SchemaMissing(
            "the database has no hybrid_monitors schema: run `hybrid-runner monitors migrate` with"
            " the same DSN"
        )
    if at < needed:
        raise SchemaMissing(
            f"the database's monitors are version {at}, this version needs {needed}: run"
            " `hybrid-runner migrate` with the same DSN"
        )


async def _install(connection: Connection) -> list[Migration]:
    async with connection.transaction(isolation="read_committed"):
        await connection.execute(script("begin"))
        return await _apply(connection)


async def _needs_change(connection: Connection) -> bool:
    at = _version_of(await connection.fetch(query("monitors_applied")))
    return bool(_missing(at)) or not (await read_installed(connection, PART)).is_current


async def _apply(connection: Connection) -> list[Migration]:
    """Asks anew behind the lock: somebody else may have migrated meanwhile."""
    await connection.execute(script("bootstrap", PART))
    missing = _missing(_version_of(await connection.fetch(query("monitors_applied"))))
    if not missing and not await _needs_change(connection):
        return []
    for step in missing:
        await connection.execute(step.sql)
        await connection.execute(_RECORD, step.version, step.name, step.checksum)
    await connection.execute(UNCHECKED)
    for _, sql in functions(PART):
        await connection.execute(sql)
    await connection.execute(script("partitions", PART))
    await connection.execute(script("grants", PART))
    await connection.execute(record(PART))
    return missing


def _missing(at: int) -> list[Migration]:
    return [step for step in migrations(PART) if step.version > at]


def _version_of(applied: list[asyncpg.Record]) -> int:
    known = {step.version: (step.name, step.checksum) for step in migrations(PART)}
    for version, name, checksum in applied:
        if known.get(version, (name, checksum)) != (name, checksum):
            raise SchemaUnreleased(
                "the monitors of this database were made by an unreleased hybrid-runner: start anew"
                " with DROP SCHEMA hybrid_monitors CASCADE, which deletes them"
            )
    at: int = applied[-1]["version"] if applied else 0
    if at > migrations(PART)[-1].version:
        raise SchemaTooNew(
            f"the database's monitors are version {at}, this version knows"
            f" {migrations(PART)[-1].version}: upgrade hybrid-runner"
        )
    return at
