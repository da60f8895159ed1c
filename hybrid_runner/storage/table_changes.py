"""Changes tables, triggers and functions: all of it or nothing, and nobody waits for long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from hybrid_runner.errors import DatabaseError
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.lock_waits import Connects, until_locks_are_free
from hybrid_runner.storage.queries import script

T = TypeVar("T")


async def change_tables(
    change: Callable[[], Awaitable[T]],
    connection: Connection,
    connects: Connects,
    *,
    longest: float,
    what: str,
    keeps: bool = True,
) -> T:
    """What `change` returns, which runs in one transaction of this connection: again from its start
    whenever somebody held a lock. Without `keeps` it is rolled back. Errors are RunnerErrors.
    """
    try:
        return await until_locks_are_free(
            lambda: _changed(change, connection, keeps=keeps),
            connection,
            connects,
            longest=longest,
            what=what,
            event="source.lock_waits",
        )
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseError(
            f"{error}: {what} as a role that may act as the owner of the table and as that of the"
            " schema hybrid_runner"
        ) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translate(error) from error


async def _changed(change: Callable[[], Awaitable[T]], connection: Connection, *, keeps: bool) -> T:
    transaction = connection.transaction(isolation="read_committed")
    await transaction.start()
    try:
        await connection.execute(script("begin"))
        changed = await change()
    except BaseException:
        await transaction.rollback()
        raise
    await (transaction.commit() if keeps else transaction.rollback())
    return changed


async def run_statements(connection: Connection, statements: Sequence[str]) -> None:
    """Run statements without arguments, in the caller's transaction."""
    for statement in statements:
        await connection.execute(statement)
