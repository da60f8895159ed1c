"""The pages' sockets, and accepting connections on them.

When no file descriptor is left, asyncio's own loop logs a traceback 128 times, and one second later
accepts 128 times as often. This one logs a line a minute and waits.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.connections import HttpConnection, HttpConnections
from hybrid_runner.web.seldom import Seldom

_BACKLOG = 128
_PAUSE = 0.2
"""Seconds until the next try, when a connection could not be accepted."""
_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Errors of one of a name's addresses that do not matter if another one can be used."""

log = logging.getLogger("hybrid_runner.web")


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of the host."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            each = socket.create_server(address, family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno not in _ABSENT:
                _close(sockets)
                raise
            absent = error
        else:
            each.setblocking(False)
            sockets.append(each)
    if absent is not None and not sockets:
        raise absent
    return sockets


class Acceptor:
    """Accepts until it is closed."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        connections: HttpConnections,
        new_connection: Callable[[], HttpConnection],
    ) -> None:
        self._sockets = sockets
        self._connections = connections
        self._new_connection = new_connection
        self._refused = Seldom()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._accept(each)) for each in self._sockets]

    async def close(self) -> None:
        """Accept no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _close(self._sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._complain(error)
                await asyncio.sleep(_PAUSE)
                continue
            try:
                if self._connections.make_room():
                    await loop.connect_accepted_socket(self._new_connection, accepted)
                else:
                    accepted.close()
                    await asyncio.sleep(0)  # whoever is connected goes first
            except OSError:  # it has hung up
                accepted.close()

    def _complain(self, error: OSError) -> None:
        if self._refused.is_due():
            log.warning(
                "clients of the pages cannot be connected: %s",
                error.strerror or error,
                extra=log_event("web.accept_failed"),
            )


def _close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()
