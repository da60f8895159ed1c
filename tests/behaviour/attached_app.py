"""The app of the tests of attached tables. Every attempt is written down as it begins."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import psycopg
from pydantic import BaseModel

from hybrid_runner import Fail, Job, RetryPolicy, Runner
from hybrid_runner.storage.connections.connection import connect

app = Runner()
DSN = app.settings.database.dsn or ""
SOON = RetryPolicy(base="1ms", cap="1ms")
BEGAN = "INSERT INTO public.runs (row_id, pid) VALUES ({}, {})"


class Audit(BaseModel):
    """A row of audits."""

    id: int
    website_url: str


async def began(row: Audit) -> None:
    connection = await connect(DSN)
    await connection.execute(BEGAN.format("$1", "$2"), row.id, os.getpid())
    await connection.close()


@app.job("audit", max_attempts=3, retry=SOON, timeout=None)
async def audit(row: Audit, job: Job) -> Any:
    """What its address says: at once, long at first, always long, or never with success."""
    await began(row)
    match row.website_url:
        case "long_at_first" if job.attempt == 1:
            await asyncio.sleep(600)
        case "long":
            await asyncio.sleep(600)
        case "unreachable":
            raise ConnectionRefusedError("nobody listens")
        case "no_site":
            raise Fail("that is no site")
    return {"score": row.id, "attempt": job.attempt}


@app.job("audit_in_thread", max_attempts=3, retry=SOON, timeout=None)
def audit_in_thread(row: Audit, job: Job) -> Any:
    with psycopg.connect(DSN) as connection:
        connection.execute(BEGAN.format("%s", "%s"), (row.id, os.getpid()))
    return {"score": row.id, "attempt": job.attempt}


@app.job("audit_in_process", max_attempts=3, retry=SOON, timeout=None, executor="process")
def audit_in_process(row: Audit, job: Job) -> Any:
    with psycopg.connect(DSN) as connection:
        connection.execute(BEGAN.format("%s", "%s"), (row.id, os.getpid()))
    if row.website_url == "long_at_first" and job.attempt == 1:
        time.sleep(600)
    return {"score": row.id, "attempt": job.attempt}
