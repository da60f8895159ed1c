"""All readers of a page server, and the loop that reads changed jobs for them. The package's
`__init__` describes the design.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from hybrid_runner.errors import DatabaseError, DatabaseUnavailable, RunnerError
from hybrid_runner.model.job_events import JobEvent
from hybrid_runner.model.jobs import JobSnapshot
from hybrid_runner.model.messages import JobsChanged
from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.stream.changes import ChangeListener
from hybrid_runner.web.stream.event_names import event_name
from hybrid_runner.web.stream.new_jobs import NewJobs
from hybrid_runner.web.stream.reader import Reader
from hybrid_runner.web.stream.room import Room
from hybrid_runner.worker.loops import Outage

PAUSE = 0.04
"""Shortest pause between two rounds, in seconds: with the worker's own pause, less than 0.1 s from
a change to its event.
"""
POLL = 0.1
"""Seconds between two reads of all watched jobs while changes are not heard."""
POLL_ALONE = 0.5
"""The same for a login that may read jobs, and not hear of changes."""
RECHECK = 2.0
"""Seconds between two reads of all watched jobs while changes are heard: for those that nobody
published, such as an UPDATE by hand.
"""
LINGER = 5.0
"""Seconds after the last reader until the connections are closed: browsers reconnect."""
MOST_PER_ROUND = 100
"""Jobs that one round reads for readers of many jobs, so 2,500 a second at most; further ones are
`skipped`.
"""
_MOST_REMEMBERED = 2000
_READER_CHECK = 0.25
"""Seconds between two checks whether readers have hung up, or the worker stops."""
_SHARE = 4
"""The pause is so many times as long as the round took, so that a slow database is read less often.
"""
_LONGEST_OUTAGE_PAUSE = 2.0
_ID = attrgetter("id")

STOPPING = "this worker stops: connect again, to another one"
_BROKEN = "something went wrong here; it is in the worker's log"

log = logging.getLogger("hybrid_runner.web")


class JobStream:
    """Runs from the first reader until a while after the last one."""

    def __init__(
        self,
        database: PageDatabase,
        room: Room | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        self._room = room or Room()
        self._stopping = stopping
        self._readers: set[Reader] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._left_at = 0.0
        self._wake = asyncio.Event()
        self._due: set[int] = set()
        self._followed: set[int] = set()
        """Jobs that readers follow since the last round."""
        self._poll = POLL
        self._known: OrderedDict[int, JobSnapshot] = OrderedDict()
        """The last snapshot of each job, whoever it was read for."""
        self._shown: dict[int, JobSnapshot] = {}
        """The last snapshots that readers of many jobs were sent. A job in `_known` that is not in
        here was read for its own reader alone, and is new to them.
        """
        self._new_jobs = NewJobs()
        self._recheck_at = 0.0
        self._checked_at = 0.0
        self._away = False

    def admits(self, *, granted: bool) -> bool:
        """Return whether another one may read; a request with the token is never refused."""
        return self._room.admits(granted=granted)

    @property
    def has_started(self) -> bool:
        """Whether there is a database to read from."""
        return self._database.dsn() is not None

    @property
    def stopping(self) -> bool:
        return self._stopping()

    def join(self, reader: Reader) -> None:
        """Send events to this reader from now on."""
        self._readers.add(reader)
        self._room.take()
        if self._away:
            reader.away()
        self._recheck_at = 0.0
        self._wake.set()
        if not self._running:
            self._running = True
            self._start(self._run())

    def leave(self, reader: Reader) -> None:
        """Forget the reader: its request has ended."""
        self._room.leave()
        self._drop(reader)

    def _drop(self, reader: Reader) -> None:
        self._readers.discard(reader)
        reader.end(None)
        self._left_at = time.monotonic()
        self._wake.set()

    def put_first(self, reader: Reader, snapshot: JobSnapshot) -> None:
        """Send the reader of one job its state at the time of the request."""
        self._offer(reader, _first(snapshot, datetime.now(UTC)))
        self._known.setdefault(snapshot.id, snapshot)

    async def close(self) -> None:
        """End all readers and tasks."""
        self._end_all(STOPPING)
        await _cancel(*self._tasks)

    # --- the loop

    async def _run(self) -> None:
        dsn, settings = self._database.dsn() or "", self._database.settings
        connection = LazyConnection(dsn, named("stream", FOR_SETTLING), timeout=5.0)
        changes = ChangeListener(
            settings.database.listen_dsn or dsn, self._on_change, self._on_hearing_changed
        )
        outage = Outage("job stream", longest=_LONGEST_OUTAGE_PAUSE)
        beside = [
            self._start(self._listen(connection, changes)),
            self._start(self._watch_readers()),
        ]
        try:
            while self._readers or time.monotonic() < self._left_at + LINGER:
                if self._readers:
                    await changes.announce()
                    began, readers = time.monotonic(), tuple(self._readers)
                    await self._read_round(connection, changes, outage)
                    for reader in readers:
                        reader.included.set()
                    await asyncio.sleep(max(PAUSE, min(1.0, _SHARE * (time.monotonic() - began))))
                else:
                    self._forget()
                await self._wait(changes)
        except Exception:
            log.exception("the stream of events failed", extra=log_event("web.stream_failed"))
        finally:
            self._running = False  # a reader that joins from here on starts a new run
            self._end_all(_BROKEN)
            self._forget()
            await _cancel(*beside)
            await connection.close()

    async def _wait(self, changes: ChangeListener) -> None:
        """Wait until a change is heard, or it is time to read again."""
        if not changes.complete:
            self._recheck_at = min(self._recheck_at, self._checked_at + self._poll)
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
                await self._wake.wait()
        self._wake.clear()

    async def _listen(self, connection: LazyConnection, changes: ChangeListener) -> None:
        """Hear of changes, if this login may: else what is watched is polled."""
        self._poll = POLL
        with contextlib.suppress(DatabaseUnavailable):
            try:
                await stream_calls.stream_readers(connection)
            except DatabaseError as error:
                self._poll = POLL_ALONE
                log.info(
                    "changes of jobs are polled, since this login may not hear of them: %s",
                    error,
                    extra=log_event("web.stream_polls"),
                )
                return
        await changes.run()

    async def _watch_readers(self) -> None:
        """End readers that have hung up, and all when the worker stops. A task of its own, so that
        it happens while the database does not answer.
        """
        while True:
            if self.stopping:
                self._end_all(STOPPING)
            for reader in [reader for reader in self._readers if not reader.is_there()]:
                self._drop(reader)
            await asyncio.sleep(_READER_CHECK)

    def _end_all(self, reason: str) -> None:
        for reader in self._readers:
            reader.end(reason)

    def _forget(self) -> None:
        self._due, self._followed = set(), set()
        self._known.clear()
        self._shown.clear()
        self._new_jobs = NewJobs()
        self._away = False

    def _start(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- a round of reads

    async def _read_round(
        self, connection: LazyConnection, changes: ChangeListener, outage: Outage
    ) -> None:
        self._new_jobs.wanted = [
            reader.subscription for reader in self._readers if reader.subscription.job_id is None
        ]
        watched = self._watched()
        changed, self._due = self._due, set()
        ids, now = changed | self._followed, time.monotonic()
        self._followed = set()
        whole = now >= self._recheck_at
        if whole:
            ids |= watched | self._live()
            pause = RECHECK if changes.complete else self._poll
            self._checked_at, self._recheck_at = now, now + pause
        try:
            fresh = await self._new_jobs.find(connection) if self._new_jobs.wanted else set()
            wanted = list(ids | fresh)
            seen = await stream_calls.job_snapshots(connection, wanted) if wanted else []
        except RunnerError as error:
            self._on_database_away()
            for reader in self._readers:
                reader.included.set()
            await outage.pause(error)
            return
        if not ids and not self._new_jobs.wanted:  # no query was made
            return
        outage.over()
        self._on_database_back()
        self._take(seen, changed | fresh)
        if (left_out := self._new_jobs.left_out()) is not None:
            for reader in self._readers:
                if reader.subscription.job_id is None:
                    reader.skip(left_out)
        if whole:
            self._tell_gone(watched - {snapshot.id for snapshot in seen})
            for reader in self._readers:
                reader.put_skipped()

    def _watched(self) -> set[int]:
        return set[int]().union(*(reader.jobs for reader in self._readers))

    def _live(self) -> set[int]:
        """Jobs that were seen last and have not ended; for readers of many jobs."""
        if not self._new_jobs.wanted:
            return set()
        live = [job_id for job_id, snapshot in self._known.items() if not snapshot.state.final]
        return set(live[-MOST_PER_ROUND:])

    def _take(self, seen: Iterable[JobSnapshot], changed: set[int]) -> None:
        """Send readers what is new. For readers of many jobs, a job that was not known is new only
        if it was reported as changed or inserted.
        """
        at = datetime.now(UTC)
        for now in sorted(seen, key=_ID):
            before, shown = self._known.get(now.id), self._shown.get(now.id)
            change = JobEvent(event_name(before, now, at), now)
            if shown != now and (
                shown is not None or now.id in changed or before not in (None, now)
            ):
                self._show(change if shown == before else JobEvent(event_name(shown, now, at), now))
            for reader in self._readers:
                if now.id in reader.jobs:
                    known = reader.knows(now.id)
                    self._offer(reader, change if known else _first(now, at))
            self._known[now.id] = now
            self._known.move_to_end(now.id)
        while len(self._known) > _MOST_REMEMBERED:
            forgotten, _ = self._known.popitem(last=False)
            self._shown.pop(forgotten, None)

    def _offer(self, reader: Reader, change: JobEvent) -> None:
        if followed := reader.offer(change):
            self._followed.update(followed)
            self._wake.set()

    def _show(self, change: JobEvent) -> None:
        self._shown[change.job.id] = change.job
        for reader in self._readers:
            if reader.subscription.covers(change.job.queue, change.job.kind):
                reader.offer(change)

    def _tell_gone(self, gone: set[int]) -> None:
        for reader in self._readers:
            for job_id in reader.jobs & gone:
                reader.gone(job_id)

    # --- what is heard

    def _on_change(self, change: JobsChanged) -> None:
        watched = self._watched()
        many = [
            reader
            for reader in self._readers
            if reader.subscription.covers(change.queue, change.kind)
        ]
        theirs = [job_id for job_id in change.ids if job_id not in watched] if many else []
        taken = theirs[: max(0, MOST_PER_ROUND - len(self._due))]
        self._due.update(taken, watched.intersection(change.ids))
        if left_out := len(theirs) - len(taken) + change.more:
            for reader in many:
                reader.skip(left_out)
        if change.more and watched:  # a watched job may be among those that had no room
            self._recheck_at = min(self._recheck_at, self._checked_at + self._poll)
        if self._due or change.more:
            self._wake.set()

    def _on_hearing_changed(self) -> None:
        """Read all watched jobs again: changes while nothing was heard were missed."""
        self._recheck_at = 0.0
        self._wake.set()

    # --- a database that is away

    def _on_database_away(self) -> None:
        self._recheck_at = 0.0
        if not self._away:
            self._away = True
            for reader in self._readers:
                reader.away()

    def _on_database_back(self) -> None:
        if self._away:
            self._away = False
            self._known.clear()
            self._shown.clear()
            for reader in self._readers:
                reader.forget()
                reader.back()
                if reader.subscription.job_id is None:  # changes meanwhile were missed
                    reader.skip(0)
                    reader.put_skipped()


def _first(snapshot: JobSnapshot, at: datetime) -> JobEvent:
    """Where a job stands, for somebody who was not told of it before."""
    return JobEvent(event_name(None, snapshot, at), snapshot)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel these tasks and wait until they have cleaned up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
