"""What the driver asks a new session about types."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside

NUMBERS = "SELECT $1::int8[] AS numbers, ARRAY[now()] AS times"


async def test_the_servers_own_types_are_asked_about_once_in_a_process(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session was asked, which was the most expensive statement of a worker's start."""
    asked = inside.types_asked_about(monkeypatch)
    for _ in range(3):
        connection = await connect(dsn)
        [row] = await connection.fetch(NUMBERS, [1, 2**62])
        assert row["numbers"] == [1, 2**62]
        assert len(row["times"]) == 1
        await connection.close()
    assert len(asked) == 1


async def test_types_of_a_database_are_asked_about_in_each_session(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next database may have another one under the same number."""
    asked = inside.types_asked_about(monkeypatch)
    await database.execute("CREATE TYPE public.colour AS ENUM ('red', 'blue')")
    for count in (1, 2):
        connection = await connect(dsn)
        got: Any = await connection.fetchval("SELECT $1::public.colour[]", ["red"])
        assert got == ["red"]
        assert len(asked) == count
        await connection.close()
