"""Reads what happens: from the producer's own words, from the worker's log, and from the tables, as
anyone could.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from datetime import datetime

from hybrid_runner.cli.demo.figures import BURST_KIND, ROUTINE_KINDS, Burst, Ended, Figures
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
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - run_at)) * 1000, 0)::float8,
    coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - run_at)) * 1000, 0)::float8
FROM hybrid_runner.archive
WHERE queue = 'demo' AND kind = $2 AND finished_at >= $1 AND created_at >= $1
"""
_CANCEL = """
SELECT hybrid_runner.cancel(id, 'the demo has ended') FROM hybrid_runner.jobs WHERE queue = 'demo' AND created_at >= $1
"""
_ALL = """
SELECT state::text, count(*) FROM hybrid_runner.all_jobs
WHERE queue = 'demo' AND created_at >= $1 GROUP BY state ORDER BY count(*) DESC
"""
_ALONE = "SELECT pg_try_advisory_lock(hashtextextended('hybrid_runner demo', 0))"


class Watcher:
    """Keeps the figures up to date."""

    def __init__(
        self, figures: Figures, connection: Connection, worker: Worker, burst: int
    ) -> None:
        self._figures = figures
        self._connection = connection
        self._worker = worker
        self._burst = burst
        self._seen: set[str] = set()
        self._since: datetime

    async def begin(self) -> None:
        """Make sure to be alone, and take the server's time: what is older is not ours."""
        if not await self._connection.fetchval(_ALONE):
            raise RunnerError("another demo is running in this database: let it end first")
        self._since = await self._connection.fetchval("SELECT clock_timestamp()")
        self._figures.newest = self._since

    async def look(self) -> None:
        """Read the tables and the worker's status."""
        figures = self._figures
        live = await self._connection.fetch(_LIVE, self._since)
        figures.live.clear()
        figures.live.update({row[0]: row[1] for row in live})
        for row in await self._connection.fetch(_ENDED, self._since, figures.newest, BURST_KIND):
            if row[0] not in figures.ended:
                figures.ended[row[0]] = Ended(*tuple(row)[:6])
                self._tell(figures.ended[row[0]])
            figures.newest = row[6]
        if figures.burst is None and figures.sent > self._burst:
            figures.ticks, seconds, p50, p99 = await self._connection.fetchrow(
                _BURST, self._since, BURST_KIND
            )  # type: ignore[misc]  # always one row
            if figures.ticks >= self._burst:
                figures.burst = Burst(figures.ticks, max(seconds, 0.001), p50, p99)
                figures.add_event(f"all {figures.ticks:,} jobs of the burst are archived")
        status = self._worker.status()
        figures.settled, figures.found = status.settled, status.queues[0].found

    async def follow(self, producer: asyncio.StreamReader) -> None:
        """Read the producer's words until it ends."""
        figures = self._figures
        while line := await producer.readline():
            said = json.loads(line)
            if "error" in said:
                raise RunnerError(f"the demo's producer failed: {said['error']}")
            figures.statement = said["sql"] + ";"
            if said["id"] is not None:
                again = said["id"] in figures.keyed
                figures.keyed.add(said["id"])
                figures.sent += not again
                what = (
                    "exists already: its key is held"
                    if again
                    else "is enqueued under the key report:2026"
                )
                figures.add_event(f"job {said['id']} {what}")
                continue
            figures.sent += said["jobs"]
            if said["jobs"] > 1:
                figures.add_event(f"one INSERT brings {said['jobs']:,} jobs")
            elif "run_at" in said["sql"]:
                figures.add_event("a reminder is inserted, due in 2 s")
        figures.producing = False

    async def leave_nothing(self) -> None:
        """Cancel what this run has left, if it was ended early."""
        await self._connection.execute(_CANCEL, self._since)

    async def count(self) -> None:
        """Look once more; what arrived is what the tables say, so that the summary adds up."""
        await self.look()
        figures = self._figures
        figures.final = Counter(
            {row[0]: row[1] for row in await self._connection.fetch(_ALL, self._since)}
        )
        figures.sent = figures.final.total()

    def _tell(self, job: Ended) -> None:
        tries = f" at attempt {job.attempt}" if job.attempt > 1 else ""
        told = (
            f"job {job.id} {job.kind} {job.state}{tries}: picked up after {job.pickup:.1f} ms, ran"
            f" {job.ran:.0f} ms"
        )
        self._figures.latest = told
        if job.kind not in ROUTINE_KINDS or job.kind not in self._seen or job.state != "completed":
            self._figures.add_event(told)
        self._seen.add(job.kind)


class WorkersWords(logging.Handler):
    """What the worker logs about jobs, as events."""

    def __init__(self, figures: Figures) -> None:
        super().__init__(logging.INFO)
        self._figures = figures

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        job = getattr(record, "job", None)
        if job is not None:
            said, kind = record.getMessage(), getattr(record, "kind", "")
            named = said if said.startswith(kind) else f"{kind} {said}"
            self._figures.add_event(f"job {job} {named}")
