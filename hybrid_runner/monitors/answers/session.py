"""The session of aiohttp that polls: one for a process, made and closed by whoever polls."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import set_exception

from hybrid_runner.monitors.answers.addresses import (
    AddressRules,
    CheckedResolver,
    Lookup,
    checked_socket,
)
from hybrid_runner.monitors.answers.bodies import ENCODINGS, LARGEST
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.version import VERSION

BUDGET: Final = LARGEST + 256 * 1024
"""Bytes that may come of one request: the largest body, its heads and the sizes of its chunks."""
_HEAD: Final = 8 * 1024
"""What a head costs besides: aiohttp keeps each that comes before the answer, `100 Continue`."""
_KEPT: Final = 20.0
"""Seconds for which a connection waits for another request: the next round of a host comes sooner.
"""


class Phases:
    """How long each part of a request took, and which one it is in."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.waited = 0.0
        """Seconds in which nobody was asked."""
        self.is_waiting = False
        self._phase = ""
        self._began = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What the block takes is no part of the request. It goes on to wait if it was ended."""
        self.begin("")
        began = time.perf_counter()
        self.is_waiting = True
        yield
        self.is_waiting = False
        self.waited += time.perf_counter() - began

    @property
    def doing(self) -> str:
        return {
            "resolve": "while the name of the host was resolved",
            "connect": "while connecting",
            "first_byte": "while it was waited for",
            "body": "while it was read",
        }.get(self._phase, "")

    @property
    def is_resolving(self) -> bool:
        return self._phase == "resolve"

    def begin(self, phase: str) -> None:
        """The phase before ends."""
        now = time.perf_counter()
        if self._phase:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._began
        self._phase, self._began = phase, now

    def end(self) -> None:
        if self._phase:
            phase = self._phase
            self.begin("")
            self._phase = phase


PHASES: Final = ContextVar[Phases]("phases of the request")
"""Of the request that is made in this context: aiohttp's traces are a sixth of what it costs."""


class _Receiver(ResponseHandler):
    """A connection that counts received bytes, after TLS, and closes beyond the budget."""

    _left = BUDGET

    def set_response_params(self, **params: Any) -> None:
        """Give the next request of this connection a budget of its own."""
        self._left = BUDGET
        super().set_response_params(**params)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Charge for a response head."""
        self._left -= _HEAD
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left >= 0:
            super().data_received(data)
        if self._left < 0 and self.transport is not None:
            failed = PollFailed("too_large", f"it has sent more than {BUDGET:,} bytes")
            body = self._payload
            self.abort()
            self.set_exception(failed)
            if body is not None:
                set_exception(body, failed)


class _TimedConnector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory: Any = partial(_Receiver, loop=self._loop)

    async def connect(self, *arguments: Any, **named: Any) -> Connection:
        connection = await super().connect(*arguments, **named)
        if (phases := PHASES.get(None)) is not None:
            phases.begin("first_byte")
        return connection


class _TimedResolver(CheckedResolver):
    """Is asked in a task of its own, which has a copy of the context."""

    async def resolve(self, *arguments: Any, **named: Any) -> list[ResolveResult]:
        phases = PHASES.get(None) or Phases()
        phases.begin("resolve")
        found = await super().resolve(*arguments, **named)
        phases.begin("connect")
        return found


class CertifiedResponse(aiohttp.ClientResponse):
    """Keeps the end of the certificate: the connection of a short answer is gone when read."""

    certificate_ends_at: datetime | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        transport = connection.transport
        if transport is not None:
            certificate = transport.get_extra_info("peercert")
            self.certificate_ends_at = _end_of(certificate)
        return await super().start(connection)


def _end_of(certificate: Any) -> datetime | None:
    if not certificate:
        return None
    try:
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        return datetime.fromtimestamp(ends, UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def open_session(
    rules: AddressRules | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    lookup: Lookup = socket.getaddrinfo,
) -> aiohttp.ClientSession:
    """To be closed by the caller. No cookies, no proxies, no redirects of its own; how many
    connections there are is limited by those who poll.
    """
    rules = rules or AddressRules()
    return aiohttp.ClientSession(
        connector=_TimedConnector(
            limit=0,
            ssl=tls or True,
            resolver=_TimedResolver(rules, lookup),
            socket_factory=checked_socket(rules),
            keepalive_timeout=_KEPT,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=CertifiedResponse,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        trust_env=False,
        auto_decompress=False,
        headers={
            "User-Agent": f"hybrid-runner/{VERSION}",
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": ENCODINGS,
        },
    )
