from __future__ import annotations

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.queries import functions


async def test_every_function_of_monitors_is_one_that_postgres_can_read(
    monitored: Connection,
) -> None:
    """Installing does not have them checked, since one may name another that comes after it."""
    for _, sql in functions("monitors"):
        await monitored.execute(sql)
