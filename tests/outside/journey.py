"""A job's way through retry, snooze and two workers, from a plain INSERT with a traceparent to its
end in Jaeger.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import worker
from tests.support.jaeger import Jaeger, Span

TASKS = """
import asyncio
import logging
import os

from hybrid_runner import Job, RetryPolicy, Runner, Snooze

app = Runner()


@app.job("thumbnail", queue="images", retry=RetryPolicy(base="100ms", cap="100ms"))
async def thumbnail(url: str, job: Job) -> dict | Snooze:
    await asyncio.sleep(0.05)
    if job.attempt == 1:
        raise ConnectionError("the server of the picture hung up")
    if job.data is None:
        return Snooze("200ms", data={"asked": True})
    if os.environ["WORKER_ID"] == "worker-1":
        logging.getLogger("hybrid_runner.tasks").warning("holding on")
        await asyncio.Event().wait()
    await asyncio.sleep(0.05)
    return {"bytes": 1234}
"""
INSERT = """
INSERT INTO hybrid_runner.jobs (queue, kind, payload, traceparent)
VALUES ('images', 'thumbnail', '"/cat.jpg"', $1) RETURNING id
"""
SPANS = 12
"""Of the job's trace: the whole, four waits, four runs, three delays."""


@dataclass(frozen=True)
class Journey:
    """What was sent, and what came of it."""

    job: int
    trace_id: str
    parent_id: str
    spans: list[Span]


async def travelled(
    dsn: str, database: Connection, folder: Path, endpoint: str, jaeger: Jaeger
) -> Journey:
    """One job: retried once, snoozed once, moved by SIGTERM to a second worker, completed."""
    (folder / "tasks.py").write_text(TASKS)
    trace_id, parent_id = secrets.token_hex(16), secrets.token_hex(8)
    command = ("tasks:app", "--dsn", dsn, "--log-level", "debug")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "HYBRID_RUNNER_GRACE": "200ms"}
    async with worker(*command, cwd=folder, **variables, WORKER_ID="worker-1") as first:
        await first.says("listening on")
        job = await database.fetchval(INSERT, f"00-{trace_id}-{parent_id}-01")
        await first.says("holding on")
        async with worker(*command, cwd=folder, **variables, WORKER_ID="worker-2") as second:
            await second.says("listening on")
            assert await first.ends() == 0
            await second.says("completed, attempt", job)
            assert await second.ends() == 0
    spans = await jaeger.until(trace_id, lambda spans: len(spans) >= SPANS)
    return Journey(job, trace_id, parent_id, spans)
