"""Fake services: many of them, on several hosts, in one process.

Every address of 127.0.0.0/8 is this machine, so each stands for a host of its own. The server
speaks just enough HTTP, by hand: a real one would not misbehave as some services must.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, assert_never, cast

from examples.status_monitor.fake.answers import Answer, Drip, Endless, Hang, Raw, Reply, as_bytes
from examples.status_monitor.fake.journal import Beginning, Journal
from examples.status_monitor.fake.scripts import SCRIPTS, Moment

_ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n["
_UNKNOWN = Reply(b'{"message":"no such service"}', 404)
_MOST_TRIES = 20


@dataclass(frozen=True)
class FakeService:
    name: str
    plays: str = "healthy"
    """The name of its script."""
    host: str = "127.0.0.1"
    """An address of 127.0.0.0/8, or localhost."""
    number: int = 0


@dataclass
class FakeServices:
    """`async with FakeServices([…]) as fakes: fakes.url("orders")`."""

    services: Iterable[FakeService]
    port: int = 0
    journal: Journal = field(default_factory=Journal)

    def __post_init__(self) -> None:
        self._by_name = {service.name: service for service in self.services}
        self._servers: list[asyncio.Server] = []
        self.connections: set[_Connection] = set()

    async def __aenter__(self) -> Self:
        for _ in range(_MOST_TRIES):
            try:
                await self._listen()
            except OSError:
                await self._close()
                if self.port:
                    raise
            else:
                return self
        raise OSError(f"no port is free on all of {sorted(self._addresses())}")

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def url(self, name: str) -> str:
        return f"http://{self._by_name[name].host}:{self.port}/{name}/dependencies"

    def play(self, name: str, script: str) -> None:
        """From its next request on it plays this one."""
        if script not in SCRIPTS:
            raise KeyError(script)
        before = self._by_name[name]
        self._by_name[name] = FakeService(name, script, before.host, before.number)

    def named(self, name: str) -> FakeService | None:
        return self._by_name.get(name)

    def _addresses(self) -> set[str]:
        hosts = {service.host for service in self._by_name.values()} or {"127.0.0.1"}
        return {"127.0.0.1" if host == "localhost" else host for host in hosts}

    async def _listen(self) -> None:
        loop, port = asyncio.get_running_loop(), self.port
        for address in sorted(self._addresses()):
            server = await loop.create_server(
                lambda: _Connection(self), address, port, backlog=1024
            )
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
        self.port = port

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()


class _Connection(asyncio.Protocol):
    """Of one client; it asks one thing after the other."""

    def __init__(self, fakes: FakeServices) -> None:
        self._fakes = fakes
        self._heard = b""
        self._current: Beginning | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._fakes.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        self._next()

    def connection_lost(self, _: Exception | None) -> None:
        self._fakes.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._end(answered=False)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False

    def abort(self) -> None:
        self._transport.abort()

    # --- one request

    def _next(self) -> None:
        if self._current is not None or b"\r\n\r\n" not in self._heard:
            return
        head, _, self._heard = self._heard.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        target = first.split(" ")[1]
        headers = dict(line.lower().split(": ", 1) for line in lines)
        host = headers.get("host", "").rsplit(":", 1)[0]
        name = target.removeprefix("/").partition("/")[0]
        service = self._fakes.named(name)
        self._current = self._fakes.journal.begin(
            name, host, f"{host}{target}", time.monotonic(), headers.get("x-worker", "")
        )
        if service is None:
            self._do(_UNKNOWN)
        else:
            self._do(SCRIPTS[service.plays](Moment(service.number, self._current.number)))

    def _do(self, answer: Answer) -> None:
        match answer:
            case Reply(after=after) if after:
                self._later(after, Reply(answer.body, answer.status, answer.headers))
            case Reply():
                self._end(answered=True)
                self._transport.write(as_bytes(answer))
                self._next()
            case Raw(sent):
                self._end(answered=True)
                self._transport.write(sent)
                self._transport.close()
            case Drip(reply, pause):
                self._drip(as_bytes(reply), pause)
            case Endless(chunk):
                self._transport.write(_ENDLESS)
                self._flood(chunk)
            case Hang():
                pass
            case _:
                assert_never(answer)

    def _end(self, *, answered: bool) -> None:
        """Noted before the last byte goes out: whoever has read it may ask the next thing."""
        if self._current is not None:
            self._fakes.journal.end(self._current, time.monotonic(), answered=answered)
            self._current = None

    def _later(self, seconds: float, answer: Answer) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._do, answer)

    def _drip(self, left: bytes, pause: float) -> None:
        if len(left) == 1:
            self._end(answered=True)
        self._transport.write(left[:1])
        if len(left) == 1:
            self._next()
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(pause, self._drip, left[1:], pause)

    def _flood(self, chunk: bytes) -> None:
        if not self._is_full:
            self._transport.write(chunk)
        self._timer = asyncio.get_running_loop().call_later(0.001, self._flood, chunk)
