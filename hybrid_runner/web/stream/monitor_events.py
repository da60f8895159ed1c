"""GET /monitors/events: the events of monitored services, live or from one of them on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from aiohttp import web

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.monitor_views import MonitorEvent
from hybrid_runner.model.monitors import EventKind
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.connections import lasts
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.jobs import json_text, unavailable
from hybrid_runner.web.pages.monitor_access import (
    MonitorAccess,
    check_name,
    flag_in,
    only_queries,
    unknown_service,
)
from hybrid_runner.web.seldom import Seldom
from hybrid_runner.web.stream.events import KEEP_ALIVE, STOP_PATIENCE, STUCK
from hybrid_runner.web.stream.monitor_feed import MonitorFeed
from hybrid_runner.web.stream.reader import event
from hybrid_runner.web.stream.room import Room
from hybrid_runner.web.stream.sse import (
    HEADERS,
    KEPT_ALIVE,
    RETRY,
    bound_backlog,
    head,
    is_there,
    no_room,
    seen_by,
)

_MOST_DIGITS = 18
_KINDS: tuple[str, ...] = get_args(EventKind)
_HIDDEN = ("error", "warnings")
"""What may hold addresses and answers: for the token alone."""
_STOPPING = "this worker stops: connect again, to another one"
_CHECK = 0.5
"""Seconds between two checks whether a reader has hung up, or the worker stops."""
_TRY_AGAIN = 1.0
"""Seconds until a reader that lags tries to read again."""
_QUERIES = {"kind", "service", "suppressed"}

log = logging.getLogger("hybrid_runner.web")


@dataclass(frozen=True, slots=True)
class Wish:
    """Which events a reader wants."""

    kinds: frozenset[str]
    service_id: int | None
    suppressed: bool
    granted: bool

    def takes(self, one: MonitorEvent) -> bool:
        if one.suppressed is not None and not self.suppressed:
            return False
        return one.kind in self.kinds and self.service_id in (None, one.service_id)

    def text_of(self, one: MonitorEvent) -> bytes:
        """The event as it is sent."""
        data: dict[str, Any] = {
            "id": one.id,
            "at": one.at,
            "kind": one.kind,
            **_shown(one.payload, granted=self.granted),
        }
        if one.suppressed is not None:
            data["suppressed"] = one.suppressed
        return f"event: {one.kind}\nid: {one.id}\ndata: ".encode() + json_text(data) + b"\n\n"


class _Reader:
    def __init__(self) -> None:
        self.reason: str | None = None
        self.abort: Callable[[], None] = lambda: None

    def end(self, reason: str | None) -> None:
        if self.reason is None:
            self.reason = reason
            self.abort()


class MonitorEventPages:
    """Each request is a reader of the feed."""

    def __init__(
        self,
        connection: PageConnection,
        feed: MonitorFeed,
        monitors: MonitorAccess,
        access: TokenCheck,
        room: Room,
        stopping: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._feed = feed
        self._monitors = monitors
        self._access = access
        self._room = room
        self._stopping = stopping
        self._readers: set[_Reader] = set()
        self._dismissed = Seldom()

    async def events(self, request: web.Request) -> web.StreamResponse:
        """What happens from now on, or behind Last-Event-ID."""
        kinds, seen = _kinds_in(request), seen_by(request, _MOST_DIGITS)
        await self._monitors.require()
        wish = Wish(
            kinds,
            await self._service_id(request.query.get("service")),
            flag_in(request, "suppressed"),
            self._access.brings_token(request),
        )
        if request.method == "HEAD":
            return head()
        if self._stopping():
            raise web.HTTPServiceUnavailable(reason=_STOPPING)
        if not self._room.admits(granted=wish.granted):
            raise no_room()
        reader = _Reader()
        self._room.take()
        self._readers.add(reader)
        lasts(request)
        try:
            newest = await self._feed.join()
            if seen is not None and seen > newest:  # it was sent by another database
                seen = newest
            return await self._send(request, reader, wish, newest if seen is None else seen)
        except RunnerError as error:
            raise unavailable(error) from None
        finally:
            self._feed.leave()
            self._readers.discard(reader)
            self._room.leave()

    async def close(self) -> None:
        """End all readers."""
        for reader in tuple(self._readers):
            reader.end(_STOPPING)
        await self._feed.close()

    async def _service_id(self, name: str | None) -> int | None:
        if name is None:
            return None
        try:
            view = await monitor_view_calls.show_service(self._connection, check_name(name))
        except RunnerError as error:
            raise self._monitors.refused(error) from None
        if view is None:
            raise unknown_service(name)
        return view.line.id

    async def _send(
        self, request: web.Request, reader: _Reader, wish: Wish, at: int
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        try:
            await response.prepare(request)
            bound_backlog(request)
            await self._write(response, reader, RETRY)
            await self._pass_on(request, response, reader, wish, at)
            if reader.reason is not None:
                if not self._stopping() and self._dismissed.is_due():
                    log.info(
                        "a reader of %s was sent away: %s",
                        request.path,
                        reader.reason,
                        extra=log_event("web.reader_dismissed"),
                    )
                reader.abort = lambda: None
                async with asyncio.timeout(0.5 if self._stopping() else STOP_PATIENCE):
                    await response.write(event("end", {"reason": reader.reason}))
                    await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except OSError:  # it has hung up
            pass
        return response

    async def _pass_on(
        self,
        request: web.Request,
        response: web.StreamResponse,
        reader: _Reader,
        wish: Wish,
        at: int,
    ) -> None:
        """Write what comes behind an event, until the reader is sent away or hangs up."""
        is_away = False
        while reader.reason is None:
            try:
                events = await self._feed.after(at)
                failed = False
            except RunnerError:
                events, failed = (), True
            is_away_now = failed or self._feed.is_away
            if is_away_now != is_away:
                is_away = is_away_now
                await self._write(response, reader, _AWAY if is_away else _BACK)
            if events:
                await self._write(response, reader, b"".join(_texts(events, at, wish)))
                at = events[-1].id
            elif failed:
                await self._news(request, reader, _TRY_AGAIN)
            elif not await self._news(request, reader, KEEP_ALIVE):
                await self._write(response, reader, KEPT_ALIVE)

    async def _news(self, request: web.Request, reader: _Reader, patience: float) -> bool:
        """Wait for something new; False if there was nothing for so many seconds."""
        until = time.monotonic() + patience
        while reader.reason is None and time.monotonic() < until:
            if self._stopping():
                reader.end(_STOPPING)
            elif not is_there(request):
                raise ConnectionResetError
            elif await self._feed.wait(_CHECK):
                return True
        return reader.reason is not None

    async def _write(self, response: web.StreamResponse, reader: _Reader, text: bytes) -> None:
        """A write that hangs for too long ends the reader; so does whoever ends it meanwhile."""
        if not text:
            return
        try:
            async with asyncio.timeout(STUCK) as limit:
                reader.abort = partial(_end_now, limit)
                await response.write(text)
        except TimeoutError:
            reader.end(f"you read too slowly: nothing was taken for {STUCK:.0f} s; connect again")
        finally:
            reader.abort = lambda: None


_AWAY = event("away", {"reason": "the database does not answer; this stream goes on once it does"})
_BACK = event("back", {})


def _kinds_in(request: web.Request) -> frozenset[str]:
    only_queries(request, _QUERIES)
    kinds = request.query.getall("kind", [])
    if unknown := set(kinds) - set(_KINDS):
        raise web.HTTPBadRequest(
            reason=f"kind: there is no {min(unknown)[:60]!r}; there are: {', '.join(_KINDS)}"
        )
    return frozenset(kinds or _KINDS)


def _texts(events: Sequence[MonitorEvent], at: int, wish: Wish) -> Iterable[bytes]:
    if (left_out := events[0].id - at - 1) > 0:
        yield event("skipped", {"at_least": left_out})
    for one in events:
        if wish.takes(one):
            yield wish.text_of(one)


def _shown(payload: Mapping[str, Any], *, granted: bool) -> Mapping[str, Any]:
    if granted:
        return payload
    return {name: value for name, value in payload.items() if name not in _HIDDEN}


def _end_now(limit: asyncio.Timeout) -> None:
    try:
        limit.reschedule(asyncio.get_running_loop().time())
    except RuntimeError:  # it is over already
        return
