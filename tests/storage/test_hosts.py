"""A DSN that names several servers."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage.connections import connection as opening
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.connections.hosts import each
from tests.support.ports import free_port
from tests.support.proxy import Proxy


@pytest.mark.parametrize(
    ("dsn", "places"),
    [
        ("postgresql://a/d", ["postgresql://a/d"]),
        ("postgresql:///d?host=/tmp", ["postgresql:///d?host=/tmp"]),
        (
            "postgresql://u:p@a:1,b/d?x=y",
            ["postgresql://u:p@a:1/d?x=y", "postgresql://u:p@b/d?x=y"],
        ),
        ("postgresql://u@[::1]:5,b:6/d", ["postgresql://u@[::1]:5/d", "postgresql://u@b:6/d"]),
        (
            "postgresql://u@/d?host=a,b&port=1,2",
            ["postgresql://u@/d?host=a&port=1", "postgresql://u@/d?host=b&port=2"],
        ),
        (
            "postgresql://u@/d?host=a,b&port=1",
            ["postgresql://u@/d?host=a&port=1", "postgresql://u@/d?host=b&port=1"],
        ),
        (
            "postgresql://a,b/d?target_session_attrs=prefer-standby",
            ["postgresql://a,b/d?target_session_attrs=prefer-standby"],
        ),
    ],
)
def test_each_server_gets_a_dsn_of_its_own(dsn: str, places: list[str]) -> None:
    assert each(dsn) == places


async def test_a_server_that_is_silent_does_not_hide_the_next(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A9: a machine that lost its power answers nothing, not even a refusal."""
    monkeypatch.setattr(opening, "CONNECT_TIMEOUT", 6.0)  # half of it for each
    hung_up = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(100):
            pass
        writer.close()
        hung_up.set()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    nobody = silent.sockets[0].getsockname()[1]
    async with silent, Proxy(dsn) as proxy:
        url = urlsplit(proxy.dsn)
        several = proxy.dsn.replace(
            url.netloc, url.netloc.replace("127.0.0.1", f"127.0.0.1:{nobody},127.0.0.1")
        )
        connection = await connect(several + "&target_session_attrs=read-write")
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
        await hung_up.wait()


async def test_when_no_server_answers_all_are_named() -> None:
    places = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    with pytest.raises(DatabaseUnavailable, match=places):
        await connect(f"postgresql://{places}/d")
