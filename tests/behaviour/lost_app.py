"""The app of the tests that kill workers. Every run is written down as it begins, and as it
ends.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psycopg

from hybrid_runner import Job, Runner
from hybrid_runner.storage.connections.connection import connect

app = Runner()
DSN = app.settings.database.dsn or ""


async def note(job: Job, what: str) -> None:
    """Into a table without a unique key."""
    connection = await connect(DSN)
    await connection.execute(
        "INSERT INTO public.runs (job_id, pid, what) VALUES ($1, $2, $3)", job.id, os.getpid(), what
    )
    await connection.close()


@app.job("once_long", timeout=None)
async def once_long(seconds: float, job: Job) -> str:
    """Long at the first attempt, at once at any other."""
    await note(job, "began")
    if job.attempt == 1:
        await asyncio.sleep(seconds)
    await note(job, "ended")
    return f"attempt {job.attempt}"


@app.job("once_until", timeout=None)
async def once_until(file: str, job: Job) -> str:
    """At the first attempt until that file is there, at once at any other."""
    await note(job, "began")
    if job.attempt == 1:
        while not Path(file).exists():  # noqa: ASYNC240
            await asyncio.sleep(0.01)
    await note(job, "ended")
    return f"attempt {job.attempt}"


@app.job("long")
async def long(seconds: float, job: Job) -> str:
    """Takes as long at every attempt."""
    await note(job, "began")
    await asyncio.sleep(seconds)
    return str(os.getpid())


@app.job("block", timeout=None)
async def block(seconds: float, job: Job) -> str:
    """Holds up the event loop, as a library that was not made for one does."""
    await note(job, "began")
    time.sleep(seconds)  # noqa: ASYNC251
    return str(os.getpid())


@app.job("block_until", timeout=None)
async def block_until(file: str, job: Job) -> str:
    """Holds up the event loop until that file is there."""
    await note(job, "began")
    _hold_up(Path(file))
    return str(os.getpid())


@app.job("block_in_time", timeout=10)
async def block_in_time(file: str, job: Job) -> str:
    """Holds up the event loop past its time-out, at the first attempt, until that file is there;
    all else that it does is well in time on a busy machine, too.
    """
    await note(job, "began")
    if job.attempt == 1:
        _hold_up(Path(file))
    return f"attempt {job.attempt}"


def _hold_up(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


@app.job("in_process", executor="process", timeout=None)
def in_process(seconds: float, job: Job) -> str:
    """Runs in a process of its own, whose number it writes down."""
    with psycopg.connect(DSN) as connection:
        connection.execute(
            "INSERT INTO public.runs (job_id, pid, what) VALUES (%s, %s, 'began')",
            (job.id, os.getpid()),
        )
    if job.attempt == 1:
        time.sleep(seconds)
    return f"attempt {job.attempt}"


@app.job("in_process_in_time", executor="process", timeout=10)
def in_process_in_time(seconds: float, job: Job) -> None:
    """Runs for longer or shorter than its time-out."""
    time.sleep(seconds)


@app.job("hold_the_gil", timeout=None)
async def hold_the_gil(seconds: float, job: Job) -> str:
    """Holds the GIL: not even another thread can run meanwhile."""
    import ctypes  # noqa: PLC0415

    await note(job, "began")
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return str(os.getpid())
