"""What somebody who reaches the port of the pages, and has no token, does not get."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web import connections
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.hosts import HostCheck
from hybrid_runner.web.server import PageServer
from tests.support.logins import Login, Logins
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.streams import BEARER, TOKEN, Stepwise, pages, served, status_of
from tests.support.waiting import until
from tests.support.working import runner

INSERT = """
INSERT INTO hybrid_runner.jobs (kind, payload, key) VALUES ('brief', '{"secret": 7}', 'customer-7')
RETURNING id
"""

COLUMNS = """
SELECT string_agg(column_name, ', ') FROM information_schema.columns
WHERE table_schema = 'hybrid_runner' AND table_name = 'jobs' AND column_name <> ALL ($1)
"""


async def said(port: int, request: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


# --- hosts


@pytest.mark.parametrize(
    ("bound", "names", "host", "allowed"),
    [
        ("127.0.0.1", None, "127.0.0.1:8080", True),
        ("127.0.0.1", None, "127.9.9.9", True),
        ("127.0.0.1", None, "localhost:8080", True),
        ("127.0.0.1", None, "LOCALHOST.:8080", True),
        ("::1", None, "[::1]:8080", True),
        ("127.0.0.1", None, "evil.example", False),
        ("127.0.0.1", None, "evil.example:8080", False),
        ("127.0.0.1", None, "localhost.evil.example", False),
        ("127.0.0.1", None, "127.0.0.1.evil.example", False),
        ("127.0.0.1", None, "evil.example@127.0.0.1", False),
        ("127.0.0.1", None, "10.0.0.7:8080", False),
        ("127.0.0.1", None, "", False),
        ("127.0.0.1", "jobs.example.org", "jobs.example.org", True),
        ("127.0.0.1", "jobs.example.org", "jobs.example.org:443", True),
        ("127.0.0.1", "a.example, Jobs.example.org", "JOBS.example.org", True),
        ("127.0.0.1", "jobs.example.org", "localhost", True),
        ("127.0.0.1", "jobs.example.org", "evil.example", False),
        ("0.0.0.0", None, "evil.example", True),
        ("0.0.0.0", "jobs.example.org", "evil.example", False),
        ("0.0.0.0", "jobs.example.org", "10.0.0.7:8080", True),
        ("0.0.0.0", "jobs.example.org", "[fd00::7]:8080", True),
        ("0.0.0.0", "jobs.example.org", "jobs.example.org:8080", True),
    ],
)
def test_a_name_that_somebody_pointed_here_is_not_ours(
    bound: str, names: str | None, host: str, allowed: bool
) -> None:
    assert HostCheck([bound], names).allows(host) is allowed


async def test_pages_on_loopback_answer_no_name_that_was_made_to_point_there(
    dsn: str, database: Connection
) -> None:
    async with served(Stepwise(dsn).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        for path in ("/health", "/ready", "/metrics", "/scale", f"/jobs/{job}", "/events"):
            async with client.session.get(path, headers={"Host": "evil.example"}) as response:
                assert (response.status, response.content_type) == (421, "application/json")
                assert "HYBRID_RUNNER_HTTP_HOSTS" in (await response.json())["error"]
        assert await status_of(client, "/health") == 200


@pytest.mark.parametrize(
    ("bound", "names", "host", "allowed"),
    [
        ("127.0.0.1", None, "jobs.example.org", True),
        ("127.0.0.1", None, "evil.example", False),
        ("0.0.0.0", None, "evil.example", True),
        ("0.0.0.0", "a.example", "jobs.example.org", True),
        ("0.0.0.0", "a.example", "evil.example", False),
    ],
)
def test_the_name_of_the_address_that_others_are_given_is_ours(
    bound: str, names: str | None, host: str, allowed: bool
) -> None:
    assert HostCheck([bound], names, "https://Jobs.example.org:8443/x").allows(host) is allowed


@pytest.mark.parametrize(
    "url", ["jobs.example.org", "https://a/?x=1", "https://a b", "ftp://a", "//a"]
)
def test_what_is_no_address_of_a_site_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^setting http_url .*: .* is no address of a site"
    ):
        Settings.load({"HYBRID_RUNNER_HTTP_URL": url})


@pytest.mark.parametrize("names", ["http://x.example", "a.example:80", "a.example,,b", "*.example"])
def test_what_is_no_name_of_a_host_is_refused_in_one_line(names: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^setting http_hosts .*: .* is no name of a host"
    ):
        Settings.load({"HYBRID_RUNNER_HTTP_HOSTS": names})


# --- what answers tell


async def test_no_answer_says_which_software_this_is(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        paths = ("/health", "/metrics", "/scale", f"/jobs/{job}", f"/jobs/{job}/events", "/events")
        for path in (*paths, "/nowhere", "/jobs/0"):
            async with client.session.get(path) as response:
                shown = response.headers
                assert "Server" not in shown
                assert shown["X-Content-Type-Options"] == "nosniff"
                assert shown["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /health HTTP/1.1\r\nHost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: x\r\n" * 5000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_no_request_is_refused_and_logs_nothing(
    request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    async with PageServer("127.0.0.1", port):
        answer = await said(port, request_)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert b"aiohttp" not in head
    assert b"Python" not in head
    assert b"error" in body
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


async def test_the_key_of_a_job_needs_the_token(dsn: str, database: Connection) -> None:
    """It often is a customer's number or address."""
    async with served(Stepwise(dsn, http_token=TOKEN).app, deaf=True) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        async with client.session.get(f"/jobs/{job}") as response:
            text = await response.text()
            assert (response.status, "customer-7" in text, '"key"' in text) == (200, False, True)
        async with client.session.get(f"/jobs/{job}", headers=BEARER) as response:
            assert (await response.json())["key"] == "customer-7"
        async with client.events(f"/jobs/{job}/events") as events:
            assert "customer-7" not in await events.next_text()


async def test_what_is_hidden_is_not_read_either(
    dsn: str, database: Connection, login: Logins
) -> None:
    """A payload that takes the server seconds to print costs nobody who may not see it: this login
    could not even read it.
    """
    job = await database.fetchval(INSERT)
    role = Login.NOBODY.role
    hidden = ["payload", "data", "key", "enqueued_by", "errors"]
    columns = await database.fetchval(COLUMNS, hidden)
    await database.execute(f"GRANT USAGE ON SCHEMA hybrid_runner TO {role}")
    await database.execute(f"GRANT SELECT ({columns}) ON hybrid_runner.jobs TO {role}")
    await database.execute(f"GRANT EXECUTE ON FUNCTION hybrid_runner.archived TO {role}")
    app = runner(dsn, http_token=TOKEN)
    port = free_port()
    database_of_pages = PageDatabase(app.settings, lambda: login(Login.NOBODY))
    async with PageServer("127.0.0.1", port, database=database_of_pages), pages(port) as client:
        assert await status_of(client, f"/jobs/{job}") == 200
        async with client.session.get(f"/jobs/{job}", headers=BEARER) as refused:
            assert refused.status == 503  # it reads all, and this login may not


# --- connections


async def test_half_a_request_is_not_waited_for(dsn: str) -> None:
    port = free_port()
    async with PageServer("127.0.0.1", port), browser(port) as client:
        slow = [said(port, part) for part in (b"", b"GET", b"GET /health HTTP/1.1\r\nX: ")]
        assert await asyncio.gather(*slow) == [b""] * 3
        assert (await client.get("/health")).status == 200


async def test_a_body_that_never_comes_is_not_waited_for(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = (
        f"POST /jobs/1/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Length: 10\r\n\r\n{"
    )
    async with served(Stepwise(dsn, http_token=TOKEN).app, deaf=True) as (client, _):
        with monkeypatch.context() as hurried:
            hurried.setattr(connections, "ANSWER", 0.2)
            assert await said(client.port, request.encode()) == b""
        assert await status_of(client, "/health") == 200


async def test_a_connection_that_is_not_used_again_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "NEXT_REQUEST", 0.2)
    port = free_port()
    async with PageServer("127.0.0.1", port):
        answer = await said(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET")
    assert answer.startswith(b"HTTP/1.1 200")


async def test_a_stream_lasts_longer_than_an_answer_may_take(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later)
    monkeypatch.setattr(connections, "time", clock)
    async with (
        served(Stepwise(dsn).app) as (client, _),
        client.events("/events") as events,
    ):
        half = asyncio.create_task(said(client.port, b"GET /health HTTP/1.1\r\n"))
        later = 3600.0
        assert await half == b""  # one that waits for longer than that is gone
        await database.execute("SELECT hybrid_runner.pause('default')")
        await database.execute(INSERT)
        await events.until("queued")


async def test_a_large_body_is_refused(dsn: str) -> None:
    path, body = "/jobs/1/cancel", b" " * 100_000
    async with (
        served(Stepwise(dsn, http_token=TOKEN).app, deaf=True) as (client, _),
        client.session.post(path, headers=BEARER, data=body) as response,
    ):
        assert response.status == 413


async def test_the_oldest_that_wait_make_room_for_a_newcomer(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    crowd: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    app = runner(dsn, http_connections=4)
    async with PageServer("127.0.0.1", port, database=app.page_database()), browser(port) as client:
        try:
            crowd += [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            assert (await client.get("/health")).status == 200
        finally:
            for _, writer in crowd:
                writer.close()
    crowded = [record for record in caplog.records if "as many as may be" in record.getMessage()]
    assert len(crowded) == 1


async def test_readers_of_events_leave_connections_for_others(dsn: str) -> None:
    port = free_port()
    app = runner(dsn, http_connections=4)
    async with (
        app,
        PageServer("127.0.0.1", port, database=app.page_database()),
        pages(port) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(3):
            await stack.enter_async_context(client.events("/events"))
        assert await status_of(client, "/events") == 503
        assert await status_of(client, "/health") == 200


async def test_stream_with_token_is_read_beside_all_streams_without_one(dsn: str) -> None:
    async with (
        served(Stepwise(dsn, http_token=TOKEN, http_readers=2).app, deaf=True) as (client, _),
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(2):
            await stack.enter_async_context(client.events("/events"))
        async with client.session.get("/events", headers={"Authorization": "Bearer x"}) as refused:
            assert refused.status == 503
        for _ in range(3):
            response = await stack.enter_async_context(
                client.session.get("/events", headers=BEARER)
            )
            assert response.status == 200
        assert await status_of(client, "/events") == 503


@pytest.fixture
def few_files() -> Iterator[None]:
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before, 1024), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


async def test_a_process_without_descriptors_says_so_once_and_accepts_when_it_has_some(
    few_files: None, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    taken: list[int] = []

    def complaints() -> list[str]:
        return [
            record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
        ]

    async with PageServer("127.0.0.1", port):
        waiting = [socket.socket() for _ in range(5)]
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        try:
            for each in waiting:
                each.connect(("127.0.0.1", port))
                each.sendall(
                    b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
            await until(complaints)
        finally:
            for descriptor in taken:
                os.close(descriptor)
        for each in waiting:
            each.settimeout(20)
            assert (await asyncio.to_thread(each.recv, 15)).startswith(b"HTTP/1.1 200")
            each.close()
    assert len(complaints()) == 1
