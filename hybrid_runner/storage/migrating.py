"""Brings a database to this version's schema: forward only, one transaction a step, safe from many processes at once."""

from __future__ import annotations

import asyncpg

from hybrid_runner.errors import SchemaMissing, SchemaTooNew
from hybrid_runner.storage.connections import Connection, Fetches
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import Migration, migrations, query, script

# Everyone who migrates waits here; the number only has to be the same everywhere.
LOCK = "SELECT pg_advisory_xact_lock(7220483551)"
RECORD = "INSERT INTO hybrid_runner.migrations (version, name) VALUES ({version}, '{name}')"
_UNDEFINED = ("3F000", "42P01")


async def migrate(connection: Connection) -> list[Migration]:
    """Apply what is missing; the steps that this call applied."""
    applied: list[Migration] = []
    try:
        async with connection.transaction():
            await connection.execute(LOCK)
            await connection.execute(script("bootstrap"))
        while step := await _apply_next(connection):
            applied.append(step)
        async with connection.transaction():
            await connection.execute(LOCK)
            await connection.execute(script("grants"))
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error
    return applied


async def _apply_next(connection: Connection) -> Migration | None:
    async with connection.transaction():
        await connection.execute(LOCK)
        at = await connection.fetchval(query("applied_migrations"))
        refuse_newer(at)
        step = next((m for m in migrations() if m.version > at), None)
        if step is not None:
            await connection.execute(step.sql)
            await connection.execute(_record(step))
        return step


async def schema_version(on: Fetches) -> int:
    """The newest migration in the database; 0 when there is no schema."""
    try:
        rows = await on.fetch(query("applied_migrations"))
    except SchemaMissing:
        return 0
    except asyncpg.PostgresError as error:
        if getattr(error, "sqlstate", "") in _UNDEFINED:
            return 0
        raise translate(error) from error
    except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error
    version: int = rows[0][0]
    return version


async def require_schema(on: Fetches) -> None:
    """SchemaMissing unless the database has every migration this version needs; newer ones are fine."""
    at, needed = await schema_version(on), migrations()[-1].version
    if at == 0:
        raise SchemaMissing("the database has no hybrid_runner schema: run `hybrid-runner migrate` with the same DSN")
    if at < needed:
        raise SchemaMissing(
            f"the database's schema is version {at}, this version needs {needed}: run `hybrid-runner migrate` with the same DSN"
        )


def refuse_newer(at: int) -> None:
    """SchemaTooNew when the database is ahead of this code."""
    known = migrations()[-1].version
    if at > known:
        raise SchemaTooNew(f"the database's schema is version {at}, this version knows {known}: upgrade hybrid-runner")


def as_script(at: int = 0) -> str:
    """What `migrate` would run from version `at` on, for psql."""
    refuse_newer(at)
    steps = [_transaction("bootstrap", script("bootstrap"))]
    steps += [_transaction(f"{m.version:04d} {m.name}", m.sql, _record(m)) for m in migrations() if m.version > at]
    steps.append(_transaction("grants", script("grants")))
    return "\n".join(steps)


def _transaction(title: str, *statements: str) -> str:
    body = "\n".join(statement.rstrip().rstrip(";") + ";" for statement in (LOCK, *statements))
    return f"-- ---- {title}\nBEGIN;\n{body}\nCOMMIT;\n"


def _record(step: Migration) -> str:
    return RECORD.format(version=step.version, name=step.name)
