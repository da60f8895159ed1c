"""A connection whose statement got no answer is not used again."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.errors import DatabaseError, DatabaseUnavailable, RowLocked, RunnerError
from hybrid_runner.storage.connections import lazy
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING


class Silent:
    """A connection to a server that went away without a word."""

    def __init__(self) -> None:
        self.terminated = False

    def is_closed(self) -> bool:
        return False

    def get_server_pid(self) -> int:
        return 42

    async def fetch(self, _query: str, *_arguments: Any, timeout: float) -> list[Any]:
        assert timeout > 0
        raise TimeoutError

    def terminate(self) -> None:
        self.terminated = True


async def test_after_a_statement_without_an_answer_the_next_one_gets_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A9: the old one may be half open for hours."""
    opened: list[Silent] = []

    async def connect(_dsn: str, _settings: object) -> Silent:
        opened.append(Silent())
        return opened[-1]

    monkeypatch.setattr(lazy, "connect", connect)
    connection = LazyConnection("postgresql://somewhere")
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            await connection.fetch("SELECT 1")
    assert [connection.terminated for connection in opened] == [True, True]


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("SELECT nothing_of_that_name()", DatabaseError),
        ("SELECT count(*) FROM hybrid_runner.duties", RowLocked),
    ],
)
async def test_a_server_that_refuses_a_statement_is_not_away(
    statement: str, refusal: type[RunnerError], dsn: str, database: Connection
) -> None:
    """A10: the page must not say that Postgres does not answer."""
    reachability = Reachability()
    connection = LazyConnection(
        dsn, FOR_SETTLING | {"lock_timeout": "1ms"}, reachability=reachability
    )
    reachability.failed(TimeoutError("no answer"))
    async with database.transaction():
        await database.execute("LOCK TABLE hybrid_runner.duties")
        with pytest.raises(refusal):
            await connection.fetch(statement)
    assert reachability.away is None
    await connection.close()


async def test_what_the_driver_refuses_to_send_says_nothing_of_the_server(dsn: str) -> None:
    reachability = Reachability()
    connection = LazyConnection(dsn, reachability=reachability)
    await connection.fetch("SELECT 1")
    reachability.failed(TimeoutError("no answer"))
    with pytest.raises(RunnerError):
        await connection.fetch("SELECT $1::int", "text")
    assert reachability.away is not None
    await connection.close()
