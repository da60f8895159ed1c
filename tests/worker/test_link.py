"""A connection whose statement got no answer is not used again."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage import connections
from hybrid_runner.storage.connections import Link


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


async def test_after_a_statement_without_an_answer_the_next_one_gets_a_new_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A9: the old one may be half open for hours."""
    opened: list[Silent] = []

    async def connect(_dsn: str, _settings: object) -> Silent:
        opened.append(Silent())
        return opened[-1]

    monkeypatch.setattr(connections, "connect", connect)
    link = Link("postgresql://somewhere")
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            await link.fetch("SELECT 1")
    assert [connection.terminated for connection in opened] == [True, True]
