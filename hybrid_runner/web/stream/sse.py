"""What all requests that read server-sent events have in common."""

from __future__ import annotations

import re
import socket

from aiohttp import web

RETRY = b"retry: 2000\n\n"
KEPT_ALIVE = b": keep-alive\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",
}
_KERNEL_BUFFER = 64 * 1024
_DIGITS = re.compile(r"[0-9]+")


def head() -> web.Response:
    """The answer to HEAD."""
    return web.Response(headers=HEADERS)


def seen_by(request: web.Request, most_digits: int) -> int | None:
    """The number in Last-Event-ID; None: there is none."""
    text = request.headers.get("Last-Event-ID", "")
    if text and (len(text) > most_digits or not _DIGITS.fullmatch(text)):
        raise web.HTTPBadRequest(
            reason="Last-Event-ID is the id of an event that was sent here: a number"
        )
    return int(text) if text else None


def is_there(request: web.Request) -> bool:
    """Whether the client has not hung up."""
    return request.transport is not None and not request.transport.is_closing()


def no_room() -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(
        reason=(
            "as many read events here as HYBRID_RUNNER_HTTP_READERS allows: try later, or set it"
            " higher"
        ),
        headers={"Retry-After": "5"},
    )


def bound_backlog(request: web.Request) -> None:
    """Keep the kernel from taking megabytes that nobody reads."""
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER)
