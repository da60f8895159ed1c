from __future__ import annotations

import asyncio
import gzip
import socket
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner.monitors.answers.bodies import unpacked
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.session import open_session
from tests.monitors.answers.certificates import make_certificate
from tests.monitors.answers.hostile import (
    Behaviour,
    answering,
    flooding,
    message,
    saying,
    serving,
    silent,
)
from tests.monitors.answers.services import NOW, poll, poll_one, service
from tests.support.ports import free_port

MILLION = 1024 * 1024
SHORT = timedelta(seconds=1)
LONG = timedelta(seconds=60)
ITEMS = b'[{"name": "db", "healthy": true}]'
LARGEST = ITEMS + b" " * (MILLION - len(ITEMS))
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def failure_of(behaviour: Behaviour, **changed: Any) -> tuple[str | None, str]:
    async with serving(behaviour) as server:
        polled = await poll_one(server.url, **changed)
    assert not polled.ok
    assert polled.items == ()
    assert not polled.is_local
    assert (polled.error or "").isprintable()
    return polled.failure, polled.error or ""


async def test_a_good_answer_is_a_good_poll() -> None:
    """C8"""
    async with serving(answering(ITEMS)) as server:
        polled = await poll_one(server.url + "?a=1#fragment")
    assert (polled.ok, [item.name for item in polled.items]) == (True, ["db"])
    assert server.requests[0].startswith(b"GET /?a=1 HTTP/1.1\r\n")
    assert set(polled.phases) == {"connect", "first_byte", "body"}
    assert polled.url.endswith("#fragment")


@pytest.mark.parametrize("status", ["500 Oops", "404 Not Found", "300 Many", "199 Odd", "600 Odd"])
async def test_what_is_not_2xx_is_a_failed_poll_whatever_the_body(status: str) -> None:
    """Section 9."""
    code = status.split(maxsplit=1)[0]
    if code == "199":  # an interim answer, and then nothing
        behaviour = saying(message(ITEMS, status), then_close=True)
    else:
        behaviour = answering(ITEMS, status)
    failure, error = await failure_of(behaviour)
    assert failure in {"http", "network"}
    assert code in error or failure == "network"


@pytest.mark.parametrize(
    "behaviour",
    [
        silent(),
        silent(b"HTTP/1.1 200 OK\r\n"),
        silent(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[", b"1"),
        silent(CHUNKED, b"5\r\n[1"),
        silent(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n"),
    ],
)
async def test_an_answer_that_is_not_whole_in_time_is_a_time_out(behaviour: Behaviour) -> None:
    """C7; section 7: one time-out covers DNS, connect, TLS and body."""
    failure, error = await failure_of(behaviour, timeout=SHORT)
    assert failure == "timeout"
    assert error.startswith("no answer within 1s while it was ")


async def test_a_body_that_drips_is_cut_off_in_time_and_the_connection_ends() -> None:
    """C7"""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        while not writer.is_closing():
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        raise ConnectionResetError

    async with serving(drip) as server:
        polled = await poll_one(server.url, timeout=SHORT)
        async with asyncio.timeout(10):
            await server.gone.wait()
    assert polled.failure == "timeout"
    assert "while it was read" in (polled.error or "")


async def test_a_name_that_nobody_resolves_is_a_time_out() -> None:
    """C7"""
    answered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(*_: Any) -> Any:
        asyncio.run_coroutine_threadsafe(answered.wait(), loop).result(30)
        return []

    polled = await poll_one("http://slow.test/", lookup=slow, timeout=SHORT)
    answered.set()
    assert polled.failure == "timeout"
    assert polled.error == "no answer within 1s while the name of the host was resolved"
    assert polled.is_local


async def test_a_handshake_that_never_ends_is_a_time_out() -> None:
    """C7"""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        polled = await poll_one(f"https://127.0.0.1:{listening.getsockname()[1]}/", timeout=SHORT)
    assert polled.failure == "timeout"
    assert polled.error == "no answer within 1s while connecting"


@pytest.mark.parametrize(
    "behaviour",
    [
        answering(b" " * (MILLION + 1)),
        answering(gzip.compress(bytes(30 * MILLION), 9), headers={"Content-Encoding": "gzip"}),
        answering(zlib.compress(b" " * 2 * MILLION), headers={"Content-Encoding": "deflate"}),
    ],
    ids=["large", "gzip bomb", "deflate"],
)
async def test_no_more_than_the_limit_is_unpacked(behaviour: Behaviour) -> None:
    """Section 7: body > 1 MiB, gzip bomb."""
    assert await failure_of(behaviour) == ("too_large", "the answer has more than 1,048,576 bytes")


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
ENDLESS = {
    "body": flooding(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536),
    "chunks": flooding(CHUNKED, b"400\r\n" + b" " * 1024 + b"\r\n"),
    "chunks of one byte": flooding(CHUNKED, b"1\r\n \r\n" * 1000),
    "chunk extension": flooding(CHUNKED + b"1;", b"x" * 65536),
    "empty gzip members": flooding(PACKED, gzip.compress(b"") * 1000),
    "interim answers": flooding(b"", CONTINUE * 1000),
}


@pytest.mark.parametrize("behaviour", ENDLESS.values(), ids=ENDLESS.keys())
@pytest.mark.parametrize("is_safe", [False, True], ids=["http", "https"])
async def test_an_endless_answer_ends_with_the_budget_of_bytes(
    behaviour: Behaviour, is_safe: bool, tmp_path: Path
) -> None:
    """Section 7: endless."""
    server_tls, client_tls = make_certificate(tmp_path, days=3) if is_safe else (None, None)
    async with serving(behaviour, server_tls) as server:
        polled = await poll_one(server.url, tls=client_tls, timeout=LONG)
        async with asyncio.timeout(60):
            await server.gone.wait()
    assert (polled.failure, polled.error) == ("too_large", "it has sent more than 1,310,720 bytes")


async def test_interim_answers_are_bounded_in_number() -> None:
    """Each is kept by aiohttp, and is many times as large as what was sent."""
    async with serving(silent(CONTINUE * 1000)) as server:
        polled = await poll_one(server.url, timeout=LONG)
    assert polled.failure == "too_large"
    async with serving(saying(CONTINUE * 10, message(ITEMS))) as server:
        assert (await poll_one(server.url)).ok


async def test_each_request_of_a_connection_has_a_budget_of_its_own() -> None:
    connections = set[int]()
    large = message(LARGEST)

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(id(writer))
        writer.write(large)
        await writer.drain()

    async with serving(behave) as server, open_session() as session:
        for _ in range(4):
            (polled,) = await poll_group(session, [service(server.url)], now=NOW)
            assert polled.ok
    assert len(connections) == 1


async def test_what_nobody_reads_may_be_of_any_size() -> None:
    endless = flooding(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536)
    async with serving(endless) as server:
        assert (await poll_one(server.url, format="status")).ok
        polls = await poll(service(server.url, id=1), service(server.url, id=2, format="status"))
        picky = {"format": "status", "expect": {"body": {"contains": "a"}}}
        assert (await poll_one(server.url, **picky)).failure == "too_large"
        picky = {"format": "status", "expect": {"body": {"path": "a", "exists": False}}}
        assert (await poll_one(server.url, **picky)).failure == "too_large"
    assert [polled.failure for polled in polls] == ["too_large", None]


async def test_a_body_that_nobody_reads_is_not_waited_for() -> None:
    async with serving(silent(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")) as server:
        assert (await poll_one(server.url, format="status")).ok


async def test_a_status_that_is_not_2xx_counts_more_than_a_body_that_is_too_large() -> None:
    """Section 9: not 2xx is a failed poll whatever the body."""
    endless = flooding(b"HTTP/1.1 503 Busy\r\n\r\n", b" " * 65536)
    assert await failure_of(endless) == ("http", "it answered 503, no 2xx")


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    """Section 7: gzip bomb."""
    bomb = gzip.compress(bytes(30 * MILLION), 9)
    tracemalloc.start()
    try:
        with pytest.raises(PollFailed):
            unpacked(bomb, "gzip")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * MILLION


def packed(encoding: str, body: bytes) -> Behaviour:
    return answering(body, headers={"Content-Encoding": encoding})


@pytest.mark.parametrize(
    "behaviour",
    [
        packed("gzip", gzip.compress(ITEMS)),
        packed("GZIP", gzip.compress(ITEMS)),
        packed("deflate", zlib.compress(ITEMS)),
        packed("deflate", zlib.compress(ITEMS, wbits=-15)),
        packed("identity", ITEMS),
        answering(LARGEST),
        packed("gzip", gzip.compress(LARGEST)),
        packed("gzip", gzip.compress(LARGEST, 0)),
        saying(
            CHUNKED,
            b"10\r\n" + b" " * 16 + b"\r\n",
            b"fff00\r\n" + LARGEST[:0xFFF00] + b"\r\n0\r\n\r\n",
        ),
    ],
)
async def test_what_is_packed_is_unpacked_up_to_the_limit(behaviour: Behaviour) -> None:
    async with serving(behaviour) as server:
        polled = await poll_one(server.url)
    assert [item.name for item in polled.items] == ["db"]


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (packed("br", ITEMS), "parse"),
        (packed("gzip, gzip", gzip.compress(gzip.compress(ITEMS))), "parse"),
        (packed("gzip", ITEMS), "parse"),
        (packed("gzip", gzip.compress(ITEMS[:9]) + gzip.compress(ITEMS[9:])), "parse"),
        (packed("gzip", gzip.compress(b"") * 1000), "parse"),
        (packed("deflate", zlib.compress(ITEMS) + b"more"), "parse"),
        (packed("gzip", gzip.compress(ITEMS)[:-5]), "network"),
        (packed("deflate", b"\x78"), "network"),
        (answering(b""), "parse"),
        (answering(b"", "204 No Content"), "parse"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n[]", then_close=True), "network"),
        (saying(CHUNKED, b"5\r\n[1", then_close=True), "network"),
        (saying(CHUNKED, b"zz\r\n[]\r\n", then_close=True), "http"),
        (saying(then_close=True), "network"),
        (saying(b"HTTP/1.1 200 OK\r\n", then_close=True), "network"),
        (saying(b"SSH-2.0-OpenSSH\r\n\r\n", then_close=True), "http"),
        (saying(b"\x00" * 100 + b"\r\n\r\n", then_close=True), "http"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n[]", then_close=True), "http"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n[]", then_close=True), "http"),
        (answering(headers={"X": "x" * 100_000}), "http"),
        (answering(headers={f"X-{n}": "x" for n in range(1000)}), "http"),
        (flooding(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000), "http"),
        (flooding(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536), "http"),
    ],
)
async def test_a_broken_answer_is_a_failed_poll_with_its_reason(
    behaviour: Behaviour, expected: str
) -> None:
    """Section 7."""
    failure, error = await failure_of(behaviour, timeout=timedelta(seconds=20))
    assert (failure, bool(error)) == (expected, True), error


async def test_nobody_listens() -> None:
    polled = await poll_one(f"http://127.0.0.1:{free_port()}/")
    assert (polled.failure, polled.is_local) == ("refused", False)
    assert polled.error == "the connection was refused: nothing listens there"


async def test_a_connection_that_is_reset_is_told_so() -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain: Any = writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        writer.transport.abort()
        raise ConnectionAbortedError

    async with serving(reset) as server:
        polled = await poll_one(server.url)
    assert (polled.failure, polled.error) == ("network", "the connection was reset")


@pytest.mark.parametrize(
    ("code", "is_local", "words"),
    [
        (socket.EAI_NONAME, False, "there is no host of that name"),
        (socket.EAI_AGAIN, True, "the name of the host cannot be resolved for now"),
        (-999, False, "the name of the host cannot be resolved: odd"),
    ],
)
async def test_a_name_that_cannot_be_resolved(code: int, is_local: bool, words: str) -> None:
    def fail(*_: Any) -> Any:
        raise socket.gaierror(code, "odd")

    polled = await poll_one("http://nowhere.test/", lookup=fail)
    assert (polled.failure, polled.is_local, polled.error) == ("dns", is_local, words)


@pytest.mark.parametrize("host", ["a" * 70 + ".test", "a..b", "."])
async def test_a_name_that_cannot_be_one_is_no_exception(host: str) -> None:
    assert (await poll_one(f"http://{host}/")).failure in {"dns", "definition"}


async def test_cookies_are_not_kept_and_proxies_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    setting = answering(headers={"Set-Cookie": "a=b; Path=/"})
    async with serving(setting) as server, open_session() as session:
        url = server.url.replace("127.0.0.1", "localhost")
        for _ in range(2):
            (polled,) = await poll_group(session, [service(url)], now=NOW)
            assert polled.ok
    assert b"Cookie" not in server.requests[1]


async def test_a_connection_is_used_again_and_still_knows_its_certificate(tmp_path: Path) -> None:
    server_tls, client_tls = make_certificate(tmp_path, days=20)
    async with serving(answering(), server_tls) as server, open_session(tls=client_tls) as session:
        polls = [(await poll_group(session, [service(server.url)], now=NOW))[0] for _ in range(2)]
    assert "connect" in polls[0].phases
    ends = {polled.certificate_ends_at for polled in polls}
    assert None not in ends
    assert len(ends) == 1


@pytest.mark.parametrize("days", [3, 90])
async def test_the_end_of_the_certificate_is_told(tmp_path: Path, days: int) -> None:
    server_tls, client_tls = make_certificate(tmp_path, days=days)
    async with serving(answering(), server_tls) as server:
        polled = await poll_one(server.url, tls=client_tls)
    assert polled.certificate_ends_at is not None
    left = polled.certificate_ends_at - datetime.now(UTC)
    assert timedelta(days=days - 1) < left <= timedelta(days=days)


async def test_days_left_may_be_expected(tmp_path: Path) -> None:
    server_tls, client_tls = make_certificate(tmp_path, days=3)
    async with serving(answering(), server_tls) as server, open_session(tls=client_tls) as session:
        expecting = service(server.url, expect={"certificate": {"above": 14}})
        (polled,) = await poll_group(session, [expecting], now=datetime.now(UTC))
    assert polled.failure == "expect"
    assert polled.error in {f"expect.certificate: found {n}, wanted above 14" for n in (2, 3)}
    assert polled.certificate_ends_at is not None


async def test_a_certificate_that_nobody_trusts_is_a_failed_poll(tmp_path: Path) -> None:
    server_tls, _ = make_certificate(tmp_path, days=3)
    async with serving(answering(), server_tls) as server:
        polled = await poll_one(server.url)
    assert polled.failure == "tls"
    assert "its certificate is not trusted: self" in (polled.error or "")


async def test_a_server_without_tls_is_a_failed_poll() -> None:
    def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(on_connection, "127.0.0.1", 0) as plain:
        polled = await poll_one(f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/")
    assert polled.failure == "tls"
    assert (polled.error or "").startswith("TLS failed: ")


def away(location: str, status: str = "302 Found") -> Behaviour:
    return answering(b"", status, {"Location": location})


async def test_a_redirect_is_not_followed_unless_that_is_wanted() -> None:
    """Section 7."""
    failure, error = await failure_of(away("http://a.test/b?key=1"))
    assert failure == "redirect"
    assert "it answered 302 and sends elsewhere (http://a.test/b)" in error


@pytest.mark.parametrize("status", ["301 A", "302 A", "303 A", "307 A", "308 A"])
async def test_as_many_redirects_are_followed_as_are_allowed(status: str) -> None:
    """Section 7."""
    async with serving(answering(ITEMS)) as last, serving(away(last.url, status)) as first:
        assert (await poll_one(first.url, follow=1)).ok
        async with serving(away(first.url, status)) as before:
            assert (await poll_one(before.url, follow=2)).ok
            polled = await poll_one(before.url, follow=1)
    assert (polled.failure, polled.error) == ("redirect", "more redirects than it may follow: 1")


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://0.0.0.0/"],
)
async def test_each_hop_is_checked(location: str) -> None:
    """Section 7: each hop checked against the address rules."""
    failure, error = await failure_of(away(location), follow=3)
    assert failure == "address"
    assert "which is not polled" in error


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://a.test/",
        "http://user:password@127.0.0.1/",
        "http://",
        "//",
        "http://a.test:0/",
        "http://[::1/",
        "http://a b.test/",
    ],
)
async def test_a_redirect_to_what_is_no_address_is_a_failed_poll(location: str) -> None:
    failure, _ = await failure_of(away(location), follow=3)
    assert failure in {"redirect", "dns", "definition"}


async def test_redirects_in_circles_end() -> None:
    failure, error = await failure_of(away("/"), follow=10)
    assert (failure, "in circles" in error) == ("redirect", True)


async def test_an_empty_location_is_no_redirect() -> None:
    assert (await failure_of(away(""), follow=1))[0] in {"redirect", "http"}


async def test_a_cancellation_passes_through_and_ends_the_connection() -> None:
    async with serving(silent(CHUNKED)) as server:
        polling = asyncio.create_task(poll(service(server.url)))
        async with asyncio.timeout(10):
            while not server.requests:
                await asyncio.sleep(0)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            await server.gone.wait()
