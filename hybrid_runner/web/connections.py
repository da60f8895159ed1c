"""Clients' connections to the pages: how many there may be at a time, and how long each may take.

The pages are served by the process that works: a connection that somebody holds open is a file
descriptor that its database does not get.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from enum import Enum
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.seldom import Seldom
from hybrid_runner.worker.interpreter import most_files

FIRST_REQUEST = 5.0
"""Seconds from the connection to the end of its first request's head."""
NEXT_REQUEST = 75.0
"""Seconds from an answer to the end of the next request's head. Proxies keep connections for a
minute; they should be the ones who close.
"""
ANSWER = 30.0
"""Seconds from a request's head until its answer is made, its body included; not for streams."""
LARGEST_BODY = 64 * 1024
SHARE = 4
"""The pages take at most a fourth of the process's file descriptors."""
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Of all answers."""
_CHECK = 1.0
_UNREADABLE = orjson.dumps({"error": "this is no HTTP request that can be read"})
_FAILED = orjson.dumps({"error": "something went wrong here; it is in the worker's log"})

log = logging.getLogger("hybrid_runner.web")


def most_connections(wanted: int) -> int:
    """So many, or fewer if the process may not have many open files."""
    return max(1, min(wanted, most_files() // SHARE))


def most_readers(wanted: int, connections: int) -> int:
    """So many event streams, or fewer: others need connections too."""
    return max(1, min(wanted, connections * 3 // 4))


class Doing(Enum):
    """What a connection is there for now."""

    WAITING = "waiting"
    """For the head of a request."""
    ANSWERING = "answering"
    STREAMING = "streaming"
    """As long as its reader reads: the stream has limits of its own."""


class HttpConnections:
    """All of one page server, those first whose state has not changed for longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[HttpConnection, None] = {}
        self._checks = False
        """Whether a check of deadlines is to come."""
        self._crowded = Seldom()
        self.failed = Seldom()
        """When a failure was last logged."""

    def make_room(self) -> bool:
        """Whether there is room for another connection. When there are too many, the one that has
        waited longest for a request is closed, or else the one that waits longest for its answer.
        """
        if len(self._open) < self._most:
            return True
        if self._crowded.is_due():
            log.warning(
                "%d clients are connected to the pages, as many as may be: of those that do not"
                " read events, the oldest are closed",
                self._most,
                extra=log_event("web.crowded"),
            )
        for doing in (Doing.WAITING, Doing.ANSWERING):
            for each in self._open:
                if each.doing is doing:
                    each.abort()
                    return True
        return False

    def moved(self, connection: HttpConnection) -> None:
        """Note that its state has just changed, or that it is new."""
        self._open.pop(connection, None)
        self._open[connection] = None
        self._check_later()

    def remove(self, connection: HttpConnection) -> None:
        self._open.pop(connection, None)

    def _check_later(self) -> None:
        if self._open and not self._checks:
            self._checks = True
            asyncio.get_running_loop().call_later(_CHECK, self._close_late)

    def _close_late(self) -> None:
        self._checks, now = False, time.monotonic()
        for each in [each for each in self._open if each.deadline <= now]:
            each.abort()
        self._check_later()


class HttpConnection(web.RequestHandler):
    """One connection."""

    __slots__ = ("_all", "deadline", "doing")

    def __init__(self, server: web.Server, connections: HttpConnections) -> None:
        options: dict[str, Any] = {"access_log": None}  # aiohttp means that, its types do not
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=NEXT_REQUEST,
            lingering_time=1.0,
            auto_decompress=False,
            **options,
        )
        self._all = connections
        self.doing = Doing.WAITING
        self.deadline = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._begin(Doing.WAITING, FIRST_REQUEST)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._all.remove(self)
        super().connection_lost(exc)

    def answers(self) -> None:
        """The head of a request is here."""
        self._begin(Doing.ANSWERING, ANSWER)

    def streams(self) -> None:
        """The answer lasts as long as its reader reads."""
        self._begin(Doing.STREAMING, math.inf)

    def waits(self) -> None:
        """The answer is made."""
        self._begin(Doing.WAITING, NEXT_REQUEST)

    def abort(self) -> None:
        """Close it at once, whatever is on its way."""
        self._all.remove(self)
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  # as aiohttp calls it
    ) -> web.StreamResponse:
        """The answer to what is no request, and to one that failed for a reason of ours; of the
        former nothing is logged, since anybody can send it.
        """
        if status >= 500:
            self.log_exception("answering %s failed", request.path, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        response = web.Response(
            body=_FAILED if status >= 500 else _UNREADABLE,
            status=status,
            content_type="application/json",
            headers=HEADERS | {"Server": "hybrid-runner"},  # else aiohttp's name and version
        )
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        if self._all.failed.is_due():
            log.error(*args, **kw, extra=log_event("web.failed"))

    def _begin(self, doing: Doing, patience: float) -> None:
        self.doing, self.deadline = doing, time.monotonic() + patience
        if self.transport is not None:
            self._all.moved(self)


@web.middleware
async def timed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tell the connection when one of its requests begins, and when its answer is made."""
    connection = request.protocol
    assert isinstance(connection, HttpConnection)  # noqa: S101  # the page server makes no others
    connection.answers()
    try:
        return await handler(request)
    finally:
        connection.waits()


def lasts(request: web.Request) -> None:
    """The answer to this request is a stream."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.streams()


async def without_banner(_: web.Request, response: web.StreamResponse) -> None:
    """Add what all answers have, and take out which software this is."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
