"""GET /jobs/{id}/events and GET /events: server-sent events, as browsers read them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from functools import partial

from aiohttp import web

from hybrid_runner.registry import NAME, QUEUE
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.jobs import JobPages, job_id_of, unavailable
from hybrid_runner.web.reader import Reader, Wish, event
from hybrid_runner.web.stream import STOPPING, JobStream

KEEP_ALIVE = 15.0
"""Seconds of silence until a comment is sent: proxies close what says nothing, often after 60."""
STUCK = 30.0
"""Seconds that one write may wait for its reader."""
FAREWELL = 10.0
"""Seconds that a reader has to take the last event; one at a stop."""
_FAREWELL_AT_STOP = 0.5
_RETRY = b"retry: 2000\n\n"
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_KERNEL_BUFFER = 64 * 1024
_NUMBER = re.compile(r"[0-9]{1,9}")


log = logging.getLogger("hybrid_runner.web")


class EventPages:
    """Each request that reads is one reader of the stream."""

    def __init__(self, jobs: JobPages, stream: JobStream) -> None:
        self._jobs = jobs
        self._stream = stream

    def routes(self) -> list[web.AbstractRouteDef]:
        """Where they are."""
        return [web.get("/jobs/{id}/events", self.job_events), web.get("/events", self.all_events)]

    async def job_events(self, request: web.Request) -> web.StreamResponse:
        """Where the job stands, then how it moves, until it has ended; 204 for whoever has seen that."""
        job_id, seen = job_id_of(request), _seen_by(request)
        if request.method == "HEAD":
            await self._jobs.standing(job_id)
            return _head()
        reader = self._admit(Reader(Wish(job_id), seen, lambda: _is_there(request)))
        try:
            standing = await self._jobs.standing(job_id)
            if standing.state.final and standing.version == seen:
                return web.Response(status=204)
            self._stream.first(reader, standing)
            return await self._send(request, reader)
        finally:
            self._stream.leave(reader)

    async def all_events(self, request: web.Request) -> web.StreamResponse:
        """How the jobs of a queue and of a kind move, from now on."""
        wish = Wish(queue=_name_in(request, "queue", QUEUE), kind=_name_in(request, "kind", NAME))
        if unknown := set(request.query) - {"queue", "kind"}:
            raise web.HTTPBadRequest(reason=f"there is no {min(unknown)[:60]!r} here: say queue, kind, both or neither")
        if request.method == "HEAD":
            return _head()
        reader = self._admit(Reader(wish, None, lambda: _is_there(request)))
        if "Last-Event-ID" in request.headers:
            reader.skip(0)
            reader.tell_skipped()
        try:
            await reader.included.wait()
            return await self._send(request, reader)
        finally:
            self._stream.leave(reader)

    def _admit(self, reader: Reader) -> Reader:
        if self._stream.stopping:
            raise web.HTTPServiceUnavailable(reason=STOPPING)
        if not self._stream.has_started:
            raise unavailable()
        if self._stream.full:
            raise web.HTTPServiceUnavailable(
                reason="as many read events here as HYBRID_RUNNER_HTTP_READERS allows: try later, or set it higher",
                headers={"Retry-After": "5"},
            )
        self._stream.join(reader)
        return reader

    async def _send(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        response = web.StreamResponse(headers=_HEADERS)
        try:
            await response.prepare(request)
            _bound_backlog(request)
            async with asyncio.timeout(FAREWELL):
                await response.write(_RETRY)
            await _pass_on(reader, response)
            if reader.reason is not None and not self._stream.stopping:
                log.info("a reader of %s was sent away: %s", request.path, reader.reason, extra=log_event("web.reader_dismissed"))
            async with asyncio.timeout(_FAREWELL_AT_STOP if self._stream.stopping else FAREWELL):
                if reader.reason is not None:
                    await response.write(event("end", {"reason": reader.reason}))
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except OSError:  # it has hung up
            pass
        return response


async def _pass_on(reader: Reader, response: web.StreamResponse) -> None:
    """Until the reader ends; a write that hangs for too long ends it."""
    while (text := await reader.next(KEEP_ALIVE)) is not None:
        try:
            async with asyncio.timeout(STUCK) as limit:
                reader.hurry = partial(_give_up, limit)
                await response.write(text)
        except TimeoutError:
            reader.end(f"you read too slowly: nothing was taken for {STUCK:.0f} s; connect again")
            return
        finally:
            reader.hurry = None


def _give_up(limit: asyncio.Timeout) -> None:
    with contextlib.suppress(RuntimeError):  # it runs out in this very turn of the loop
        limit.reschedule(asyncio.get_running_loop().time())


def _is_there(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def _bound_backlog(request: web.Request) -> None:
    """What a reader leaves unread waits here, where it is bounded and seen, and not in the kernel, which takes megabytes."""
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER)


def _head() -> web.Response:
    return web.Response(headers=_HEADERS)


def _seen_by(request: web.Request) -> int | None:
    """The version that the client has seen last; None: none yet."""
    text = request.headers.get("Last-Event-ID", "")
    if text and not _NUMBER.fullmatch(text):
        raise web.HTTPBadRequest(reason="Last-Event-ID is the id of an event that was sent here: a number")
    return int(text) if text else None


def _name_in(request: web.Request, name: str, pattern: re.Pattern[str]) -> str | None:
    text = request.query.get(name)
    if text is not None and not pattern.fullmatch(text):
        raise web.HTTPBadRequest(reason=f"{name}: use letters, digits and . _ : / -")
    return text
