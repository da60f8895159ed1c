"""Shows readers how jobs move: hears which have changed, asks where they stand, hands out what is
new.

What readers are sent was read from the database, in the order of the reads; a message only says
where to look. With nobody
reading there is no connection, no task and no timer. While nothing can be heard (a pooler, a lost
connection) and in the first
second after readers were announced, all that is watched is asked for every POLL seconds; otherwise
every RECHECK seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.jobs import JobSnapshot
from hybrid_runner.model.messages import JobsChanged
from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.page_database import PageDatabase
from hybrid_runner.web.stream.changes import Changes
from hybrid_runner.web.stream.happening import happening
from hybrid_runner.web.stream.new_jobs import NewJobs
from hybrid_runner.web.stream.reader import Reader, event
from hybrid_runner.worker.loops import Outage

PAUSE = 0.04
"""Seconds between two looks at the least: with a worker's own pause less than a tenth of a second
from change to event.
"""
POLL = 0.1
"""Seconds between two looks at everything that is watched, while nobody would tell us."""
RECHECK = 2.0
"""The same while we are told: for what was said to nobody, or changed by strangers."""
LINGER = 5.0
"""Seconds after the last reader until the connections are closed: browsers come back."""
MOST_AT_A_LOOK = 100
"""Jobs that one look reads beside those that are watched by their id: 2,500 a second at most; the
rest is `skipped`.
"""
_MOST_REMEMBERED = 2000
_GLANCE = 0.25
"""Seconds between two looks at who has hung up, and whether the worker stops."""
_SHARE = 4
"""The pause is so many times as long as the look took: a slow database is not asked more."""
_LONGEST_OUTAGE_PAUSE = 2.0

STOPPING = "this worker stops: connect again, to another one"
_BROKEN = "something went wrong here; it is in the worker's log"
_AWAY = event("away", {"reason": "the database does not answer; this stream goes on once it does"})
_BACK = event("back", {})

log = logging.getLogger("hybrid_runner.web")


class JobStream:
    """All readers of one page server. Runs from the first reader's coming until a while after the
    last one's going.
    """

    def __init__(self, source: PageDatabase, stopping: Callable[[], bool]) -> None:
        self._source = source
        self._stopping = stopping
        self._readers: set[Reader] = set()
        self._guests: set[Reader] = set()
        """Those, and the ones that have gone while their requests still live."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._left_at = 0.0
        self._stir = asyncio.Event()
        self._due: set[int] = set()
        self._known: OrderedDict[int, JobSnapshot] = OrderedDict()
        """Where jobs stood when they were seen last, whoever they were read for."""
        self._shown: dict[int, JobSnapshot] = {}
        """Of these, what those who read of many were shown; what is only watched by its id is news
        to them.
        """
        self._new_jobs = NewJobs()
        self._recheck_at = 0.0
        self._checked_at = 0.0
        self._away = False

    @property
    def full(self) -> bool:
        """Whether nobody else can be taken."""
        return len(self._guests) >= self._source.settings.pages.http_readers

    @property
    def has_started(self) -> bool:
        """Whether there is a database to ask."""
        return self._source.dsn() is not None

    @property
    def stopping(self) -> bool:
        """Whether the worker stops."""
        return self._stopping()

    def join(self, reader: Reader) -> None:
        """From now on it is told."""
        self._readers.add(reader)
        self._guests.add(reader)
        if self._away:
            reader.put(_AWAY)
        self._recheck_at = 0.0
        self._stir.set()
        if not self._running:
            self._running = True
            self._soon(self._run())

    def leave(self, reader: Reader) -> None:
        """Its request has ended."""
        self._guests.discard(reader)
        self._drop(reader)

    def _drop(self, reader: Reader) -> None:
        self._readers.discard(reader)
        reader.end(None)
        self._left_at = time.monotonic()
        self._stir.set()

    def first(self, reader: Reader, standing: JobSnapshot) -> None:
        """Where its job stands as it comes."""
        reader.offer(standing, _text(happening(None, standing, datetime.now(UTC)), standing))
        self._known.setdefault(standing.id, standing)

    async def close(self) -> None:
        """End all readers, and all that is done for them."""
        self._end_all(STOPPING)
        await _ended(*self._tasks)

    # --- the loop

    async def _run(self) -> None:
        dsn, settings = self._source.dsn() or "", self._source.settings
        link = LazyConnection(dsn, named("stream", FOR_SETTLING), timeout=5.0)
        changes = Changes(settings.database.listen_dsn or dsn, self._on_change, self._on_turn)
        outage = Outage("job stream", longest=_LONGEST_OUTAGE_PAUSE)
        beside = [self._soon(changes.run()), self._soon(self._attend())]
        try:
            while self._readers or time.monotonic() < self._left_at + LINGER:
                if self._readers:
                    await changes.keep_lit()
                    began, readers = time.monotonic(), tuple(self._readers)
                    await self._look(link, changes, outage)
                    for reader in readers:
                        reader.included.set()
                    await asyncio.sleep(max(PAUSE, min(1.0, _SHARE * (time.monotonic() - began))))
                else:
                    self._forget()
                await self._rest(changes)
        except Exception:
            log.exception("the stream of events failed", extra=log_event("web.stream_failed"))
        finally:
            self._running = False  # from here on a new reader starts a new run
            self._end_all(_BROKEN)
            self._forget()
            await _ended(*beside)
            await link.close()

    async def _rest(self, changes: Changes) -> None:
        """Until something is heard, or it is time to look again."""
        if not changes.complete:
            self._recheck_at = min(self._recheck_at, self._checked_at + POLL)
        pause = LINGER
        if self._readers:
            pause = (
                POLL - PAUSE
                if self._new_jobs.wanted
                else max(0.0, self._recheck_at - time.monotonic())
            )
            if self._new_jobs.waiting:
                return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stir.wait()
        self._stir.clear()

    async def _attend(self) -> None:
        """Beside the looks: a database that does not answer must not keep readers from being told
        of a stop.
        """
        while True:
            if self.stopping:
                self._end_all(STOPPING)
            for reader in [reader for reader in self._readers if not reader.is_there()]:
                self._drop(reader)
            await asyncio.sleep(_GLANCE)

    def _end_all(self, reason: str) -> None:
        for reader in self._readers:
            reader.end(reason)

    def _forget(self) -> None:
        self._due = set()
        self._known.clear()
        self._shown.clear()
        self._new_jobs = NewJobs()
        self._away = False

    def _soon(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- a look

    async def _look(self, link: LazyConnection, changes: Changes, outage: Outage) -> None:
        self._new_jobs.wanted = [
            reader.subscription for reader in self._readers if reader.subscription.job_id is None
        ]
        watched = self._watched()
        told, self._due = self._due, set()
        ids, now = set(told), time.monotonic()
        whole = now >= self._recheck_at
        if whole:
            ids |= watched | self._live()
            self._checked_at, self._recheck_at = now, now + (RECHECK if changes.complete else POLL)
        try:
            fresh = await self._new_jobs.find(link) if self._new_jobs.wanted else set()
            seen = await stream_calls.job_snapshots(link, list(ids | fresh)) if ids or fresh else []
        except RunnerError as error:
            self._go_away()
            for reader in self._readers:
                reader.included.set()
            await outage.pause(error)
            return
        if not ids and not self._new_jobs.wanted:  # nobody was asked
            return
        outage.over()
        self._come_back()
        self._take(seen, told | fresh)
        if (left_out := self._new_jobs.left_out()) is not None:
            for reader in self._readers:
                if reader.subscription.job_id is None:
                    reader.skip(left_out)
        if whole:
            self._end_those_of(watched - {standing.id for standing in seen})
            for reader in self._readers:
                reader.tell_skipped()

    def _watched(self) -> set[int]:
        return {
            reader.subscription.job_id
            for reader in self._readers
            if reader.subscription.job_id is not None
        }

    def _live(self) -> set[int]:
        """What was seen of late and has not ended; for those who read of many jobs."""
        if not self._new_jobs.wanted:
            return set()
        live = [job_id for job_id, standing in self._known.items() if not standing.state.final]
        return set(live[-MOST_AT_A_LOOK:])

    def _take(self, seen: Iterable[JobSnapshot], told: set[int]) -> None:
        """Hand out what is new; a job of which nothing was known is so only if we were told of
        it.
        """
        at = datetime.now(UTC)
        for now in sorted(seen):
            before, shown = self._known.get(now.id), self._shown.get(now.id)
            text = _text(happening(before, now, at), now)
            if shown != now and (shown is not None or now.id in told or before not in (None, now)):
                self._show(now, text if shown == before else _text(happening(shown, now, at), now))
            for reader in self._readers:
                if reader.subscription.job_id == now.id:
                    reader.offer(now, text)
            self._known[now.id] = now
            self._known.move_to_end(now.id)
        while len(self._known) > _MOST_REMEMBERED:
            forgotten, _ = self._known.popitem(last=False)
            self._shown.pop(forgotten, None)

    def _show(self, now: JobSnapshot, text: bytes) -> None:
        self._shown[now.id] = now
        for reader in self._readers:
            if reader.subscription.covers(now.queue, now.kind):
                reader.offer(now, text)

    def _end_those_of(self, gone: set[int]) -> None:
        for reader in self._readers:
            if reader.subscription.job_id in gone:
                reader.put(event("gone", {"id": reader.subscription.job_id}))
                reader.end(None)

    # --- what is heard

    def _on_change(self, change: JobsChanged) -> None:
        watched = self._watched()
        many = [
            reader
            for reader in self._readers
            if reader.subscription.covers(change.queue, change.kind)
        ]
        theirs = [job_id for job_id in change.ids if job_id not in watched] if many else []
        taken = theirs[: max(0, MOST_AT_A_LOOK - len(self._due))]
        self._due.update(taken, watched.intersection(change.ids))
        if left_out := len(theirs) - len(taken) + change.more:
            for reader in many:
                reader.skip(left_out)
        if change.more and watched:  # it may be among those that had no room
            self._recheck_at = min(self._recheck_at, self._checked_at + POLL)
        if self._due or change.more:
            self._stir.set()

    def _on_turn(self) -> None:
        """Hearing begins, or ends: what has changed meanwhile nobody said."""
        self._recheck_at = 0.0
        self._stir.set()

    # --- a database that is away

    def _go_away(self) -> None:
        self._recheck_at = 0.0
        if not self._away:
            self._away = True
            for reader in self._readers:
                reader.put(_AWAY)

    def _come_back(self) -> None:
        if self._away:
            self._away = False
            self._known.clear()
            self._shown.clear()
            for reader in self._readers:
                reader.forget()
                reader.put(_BACK)
                if reader.subscription.job_id is None:  # what has changed meanwhile nobody knows
                    reader.skip(0)
                    reader.tell_skipped()


def _text(name: str, standing: JobSnapshot) -> bytes:
    shown = standing._asdict()
    if (
        standing.progress is not None
    ):  # as it is: somebody may have written by SQL what no encoder here can write
        shown["progress"] = orjson.Fragment(standing.progress)
    return event(name, shown, str(standing.version))


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel them and wait until they have cleaned up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
