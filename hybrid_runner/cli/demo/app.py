"""A small application: a Runner and a few handlers. `hybrid-runner worker
hybrid_runner.cli.demo.app:app` runs it for good.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta

from pydantic import BaseModel

from hybrid_runner import Job, RetryPolicy, Runner, Snooze

app = Runner()


class Thumbnail(BaseModel):
    """The payload of a thumbnail job."""

    url: str
    width: int = 320


@app.job("greeting", queue="demo")
async def greeting(payload: dict[str, str]) -> str:
    """The shortest handler: its return value is kept as the job's result."""
    return f"hello {payload.get('name', 'world')}"


@app.job("thumbnail", queue="demo", max_attempts=5, timeout=30)
async def thumbnail(payload: Thumbnail, job: Job) -> dict[str, int]:
    """A model checks the payload, and progress can be watched."""
    for step in range(1, 5):
        await asyncio.sleep(0.05)
        await job.progress(step / 4, f"resizing {payload.url}")
    return {"width": payload.width, "bytes": 1234}


@app.job("checksum", queue="demo")
def checksum(payload: dict[str, str]) -> str:
    """A plain `def` runs in a thread; executor="process" would run it in a process."""
    return hashlib.sha256(payload.get("text", "").encode() * 100_000).hexdigest()


@app.job(
    "payment",
    queue="demo",
    retry=RetryPolicy(base=timedelta(seconds=0.4), cap=timedelta(seconds=0.8)),
)
async def payment(payload: dict[str, int], job: Job) -> str:
    """A handler that raises is tried again by its policy; the errors are kept."""
    if job.attempt == 1:
        raise ConnectionError("the bank did not answer")
    return f"{payload.get('cents', 0)} cents paid at attempt {job.attempt}"


@app.job("upload", queue="demo")
async def upload(_: dict[str, str], job: Job) -> Snooze | str:
    """Waiting costs no slot: come back later, with what is known by then, and no attempt is
    charged.
    """
    asked = (job.data or 0) + 1
    return Snooze(0.5, data=asked) if asked < 3 else f"there, when asked {asked} times"


@app.job("report", queue="demo")
async def report(payload: dict[str, int]) -> str:
    """Enqueued with a key: there is at most one live job per key."""
    await asyncio.sleep(0.4)
    return f"the report of {payload.get('year', 2000)}"


@app.job("reminder", queue="demo")
async def reminder(payload: dict[str, str]) -> str:
    """Inserted with a `run_at` in the future."""
    return payload.get("text", "")


@app.job("tick", queue="demo")
async def tick(_: dict[str, int]) -> None:
    """Does nothing, many times: what is left is what a job costs."""
