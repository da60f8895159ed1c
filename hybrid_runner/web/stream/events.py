"""GET /jobs/{id}/events and GET /events: the requests that read server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Sequence
from functools import partial

from aiohttp import web

from hybrid_runner.handlers.kind import NAME, QUEUE
from hybrid_runner.model.jobs import JobSnapshot
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.connections import lasts
from hybrid_runner.web.pages.jobs import JobPages, job_id_of, unavailable
from hybrid_runner.web.seldom import Seldom
from hybrid_runner.web.stream.job_stream import STOPPING, JobStream
from hybrid_runner.web.stream.reader import MOST_FOLLOWED, EventReader, Subscription, event
from hybrid_runner.web.stream.sse import (
    HEADERS,
    RETRY,
    bound_backlog,
    head,
    is_there,
    no_room,
    seen_by,
)

KEEP_ALIVE = 15.0
"""Seconds without an event until a comment is sent: proxies close silent connections, often after
60 s.
"""
STUCK = 30.0
"""Seconds that one write may wait for a client that does not read."""
STOP_PATIENCE = 10.0
"""Seconds that a client has to take the last event."""
_STOP_PATIENCE_AT_SHUTDOWN = 0.5
_MOST_DIGITS = 9
"""Of a job's version."""

log = logging.getLogger("hybrid_runner.web")


class EventPages:
    """The two pages; each request that reads is one reader of the stream."""

    def __init__(self, jobs: JobPages, stream: JobStream, access: TokenCheck) -> None:
        self._jobs = jobs
        self._stream = stream
        self._access = access
        self._dismissed = Seldom()  # whoever reads badly on purpose can be dismissed all the time

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/jobs/{id}/events", self.job_events), web.get("/events", self.all_events)]

    async def job_events(self, request: web.Request) -> web.StreamResponse:
        """The state of a job now, then its changes until it has ended; with `follow_ups` those of
        the jobs that its end has stored, too. 204 if the client has seen the end.
        """
        job_id, seen = job_id_of(request), seen_by(request, _MOST_DIGITS)
        subscription = Subscription(job_id, follow_ups=_follows(request))
        if request.method == "HEAD":
            await self._jobs.snapshot(job_id)
            return head()
        reader = self._admit(request, subscription, seen)
        try:
            jobs = await self._jobs_of(subscription, await self._jobs.snapshot(job_id))
            if _has_seen_all(subscription, seen, jobs):
                return web.Response(status=204)
            for job in jobs:
                self._stream.put_first(reader, job)
            return await self._send(request, reader)
        finally:
            self._stream.leave(reader)

    async def all_events(self, request: web.Request) -> web.StreamResponse:
        """The changes of all jobs of a queue and of a kind, from now on."""
        subscription = Subscription(
            queue=_name_in(request, "queue", QUEUE), kind=_name_in(request, "kind", NAME)
        )
        if unknown := set(request.query) - {"queue", "kind"}:
            raise web.HTTPBadRequest(
                reason=f"there is no {min(unknown)[:60]!r} here: say queue, kind, both or neither"
            )
        if request.method == "HEAD":
            return head()
        reader = self._admit(request, subscription, None)
        if "Last-Event-ID" in request.headers:
            reader.skip(0)
            reader.put_skipped()
        try:
            await reader.included.wait()
            return await self._send(request, reader)
        finally:
            self._stream.leave(reader)

    async def _jobs_of(self, subscription: Subscription, first: JobSnapshot) -> list[JobSnapshot]:
        """The job, and those that are followed from it: where they stand at this time."""
        jobs, fresh, known = [first], [first], {first.id}
        while subscription.follow_ups and len(known) <= MOST_FOLLOWED:
            stored = {each for job in fresh for each in job.followed_by or ()} - known
            if not stored:
                break
            # One more than are followed says that they are too many.
            wanted = sorted(stored)[: MOST_FOLLOWED + 1 - len(known)]
            known.update(wanted)
            fresh = await self._jobs.snapshots(wanted)
            jobs += fresh
        return jobs

    def _admit(
        self, request: web.Request, subscription: Subscription, seen: int | None
    ) -> EventReader:
        if self._stream.stopping:
            raise web.HTTPServiceUnavailable(reason=STOPPING)
        if not self._stream.has_started:
            raise unavailable()
        if not self._stream.admits(granted=self._access.brings_token(request)):
            raise no_room()
        reader = EventReader(subscription, seen, lambda: is_there(request))
        self._stream.join(reader)
        lasts(request)
        return reader

    async def _send(self, request: web.Request, reader: EventReader) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        try:
            await response.prepare(request)
            bound_backlog(request)
            async with asyncio.timeout(STOP_PATIENCE):
                await response.write(RETRY)
            await _pass_on(reader, response)
            dismissed = reader.reason is not None and not self._stream.stopping
            if dismissed and self._dismissed.is_due():
                log.info(
                    "a reader of %s was sent away: %s",
                    request.path,
                    reader.reason,
                    extra=log_event("web.reader_dismissed"),
                )
            async with asyncio.timeout(
                _STOP_PATIENCE_AT_SHUTDOWN if self._stream.stopping else STOP_PATIENCE
            ):
                if reader.reason is not None:
                    await response.write(event("end", {"reason": reader.reason}))
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except OSError:  # it has hung up
            pass
        return response


async def _pass_on(reader: EventReader, response: web.StreamResponse) -> None:
    """Write the reader's events until it ends; a write that hangs for too long ends it."""
    while (text := await reader.next(KEEP_ALIVE)) is not None:
        try:
            async with asyncio.timeout(STUCK) as limit:
                reader.abort_write = partial(_give_up, limit)
                await response.write(text)
        except TimeoutError:
            reader.end(f"you read too slowly: nothing was taken for {STUCK:.0f} s; connect again")
            return
        finally:
            reader.abort_write = None


def _give_up(limit: asyncio.Timeout) -> None:
    with contextlib.suppress(RuntimeError):  # it has just run out
        limit.reschedule(asyncio.get_running_loop().time())


def _has_seen_all(
    subscription: Subscription, seen: int | None, jobs: Sequence[JobSnapshot]
) -> bool:
    """Whether a client that comes back need not do so again."""
    if not subscription.follow_ups:
        return jobs[0].state.final and jobs[0].version == seen
    if len(jobs) > MOST_FOLLOWED:  # it was told that these are too many
        return seen is not None
    return seen == len(jobs) and all(job.state.final for job in jobs)


def _follows(request: web.Request) -> bool:
    if unknown := set(request.query) - {"follow_ups"}:
        raise web.HTTPBadRequest(
            reason=f"there is no {min(unknown)[:60]!r} here: say follow_ups=true, or nothing"
        )
    said = request.query.get("follow_ups", "false")
    if said not in ("true", "false"):
        raise web.HTTPBadRequest(reason="follow_ups: use true or false")
    return said == "true"


def _name_in(request: web.Request, name: str, pattern: re.Pattern[str]) -> str | None:
    text = request.query.get(name)
    if text is not None and not pattern.fullmatch(text):
        raise web.HTTPBadRequest(reason=f"{name}: use letters, digits and . _ : / -")
    return text
