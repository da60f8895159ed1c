"""Reads what happens: from the producer's JSON lines, the worker's log lines, and the tables."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from datetime import datetime

from hybrid_runner.cli.demo.observations import (
    BURST_KIND,
    ROUTINE_KINDS,
    Burst,
    EndedJob,
    Observations,
)
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.worker import Worker

_LIVE = (
    "SELECT state::text, count(*) FROM hybrid_runner.jobs WHERE queue = 'demo' AND created_at >= $1"
    " GROUP BY state"
)
_ENDED = """
SELECT
    id, kind, state::text, coalesce(extract(epoch FROM started_at - run_at) * 1000, 0)::float8,
    coalesce(extract(epoch FROM finished_at - started_at) * 1000, 0)::float8, attempt, finished_at
FROM hybrid_runner.archive
WHERE queue = 'demo' AND kind <> $3 AND finished_at >= $2 AND created_at >= $1
ORDER BY finished_at
"""
_BURST = """
SELECT
    count(*), coalesce(extract(epoch FROM max(finished_at) - min(created_at)), 0)::float8,
    coalesce(1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM pickup)), 0),
    coalesce(1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM pickup)), 0)
FROM (
    SELECT created_at, finished_at, started_at - run_at AS pickup FROM hybrid_runner.archive
    WHERE queue = 'demo' AND kind = $2 AND finished_at >= $1 AND created_at >= $1
) AS burst
"""
_CANCEL = """
SELECT hybrid_runner.cancel(id, 'the demo has ended') FROM hybrid_runner.jobs
WHERE queue = 'demo' AND created_at >= $1
"""
_ALL = """
SELECT state::text, count(*) FROM hybrid_runner.all_jobs
WHERE queue = 'demo' AND created_at >= $1 GROUP BY state ORDER BY count(*) DESC
"""
_ALONE = "SELECT pg_try_advisory_lock(hashtextextended('hybrid_runner demo', 0))"


class Watcher:
    """Keeps the observations up to date."""

    def __init__(
        self, seen: Observations, connection: Connection, worker: Worker, burst: int
    ) -> None:
        self._seen = seen
        self._connection = connection
        self._worker = worker
        self._burst = burst
        self._kinds_shown: set[str] = set()
        self._since: datetime

    async def begin(self) -> None:
        """Make sure to be the only demo, and take the server's time: older jobs are not counted."""
        if not await self._connection.fetchval(_ALONE):
            raise RunnerError("another demo is running in this database: let it end first")
        self._since = await self._connection.fetchval("SELECT clock_timestamp()")
        self._seen.newest = self._since

    async def look(self) -> None:
        """Read the tables and the worker's status."""
        seen = self._seen
        live = await self._connection.fetch(_LIVE, self._since)
        seen.live.clear()
        seen.live.update({row[0]: row[1] for row in live})
        for row in await self._connection.fetch(_ENDED, self._since, seen.newest, BURST_KIND):
            if row[0] not in seen.ended:
                seen.ended[row[0]] = EndedJob(*tuple(row)[:6])
                self._add_end(seen.ended[row[0]])
            seen.newest = row[6]
        if seen.burst is None and seen.sent > self._burst:
            await self._look_at_burst()
        status = self._worker.status()
        seen.settled, seen.found = status.settled, status.queues[0].found

    async def _look_at_burst(self) -> None:
        seen = self._seen
        [row] = await self._connection.fetch(_BURST, self._since, BURST_KIND)
        seen.burst_ended, seconds, p50, p99 = row
        if seen.burst_ended >= self._burst:
            seen.burst = Burst(seen.burst_ended, max(seconds, 0.001), p50, p99)
            seen.add_event(f"all {seen.burst_ended:,} jobs of the burst are archived", "bold")

    async def follow(self, producer: asyncio.StreamReader) -> None:
        """Read what the producer says until it ends."""
        seen = self._seen
        while line := await producer.readline():
            said = json.loads(line)
            if "error" in said:
                raise RunnerError(f"the demo's producer failed: {said['error']}")
            if not seen.sent:
                seen.add_event(f"{said['sql']};", "cyan")
            if said["id"] is not None:
                again = said["id"] in seen.keyed
                seen.keyed.add(said["id"])
                seen.sent += not again
                what = (
                    "exists already: its key is held"
                    if again
                    else "is enqueued under the key report:2026"
                )
                seen.add_event(f"job {said['id']} {what}")
                continue
            seen.sent += said["jobs"]
            if said["jobs"] > 1:
                seen.add_event(f"one INSERT brings {said['jobs']:,} jobs", "bold")
            elif "run_at" in said["sql"]:
                seen.add_event("a reminder is inserted, due in 2 s")

    async def leave_nothing(self) -> None:
        """Cancel what this run has left, if it was ended early."""
        await self._connection.execute(_CANCEL, self._since)

    async def count(self) -> None:
        """Look once more; what arrived is what the tables say, so that the summary adds up."""
        await self.look()
        seen = self._seen
        seen.final = Counter(
            {row[0]: row[1] for row in await self._connection.fetch(_ALL, self._since)}
        )
        seen.sent = seen.final.total()

    def _add_end(self, job: EndedJob) -> None:
        tries = f" at attempt {job.attempt}" if job.attempt > 1 else ""
        known = job.kind in ROUTINE_KINDS and job.kind in self._kinds_shown
        if not known or job.state != "completed":
            self._seen.add_event(
                f"job {job.id} {job.kind} {job.state}{tries}: picked up after {job.pickup:.1f} ms,"
                f" ran {job.ran:.0f} ms",
                "green" if job.state == "completed" else "red",
            )
        self._kinds_shown.add(job.kind)


class JobLogLines(logging.Handler):
    """Makes events of what the worker logs about jobs."""

    def __init__(self, seen: Observations) -> None:
        super().__init__(logging.INFO)
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        job = getattr(record, "job", None)
        if job is not None:
            message, kind = record.getMessage(), getattr(record, "kind", "")
            named = message if message.startswith(kind) else f"{kind} {message}"
            colour = "red" if record.levelno >= logging.WARNING else "yellow"
            self._seen.add_event(f"job {job} {named}", colour)
