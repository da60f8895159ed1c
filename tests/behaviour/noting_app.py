"""The app of the tests in which Postgres is not reached directly, or goes away: every run is a line
of a file.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hybrid_runner import Job, Retry, Runner, Snooze
from hybrid_runner.model.outcomes import HandlerOutcome
from hybrid_runner.settings import Tuning

RUNS = "RUNS_FILE"
DOORBELL_RATE = "DOORBELL_RATE"

app = Runner(tuning=Tuning(doorbell_rate=float(os.environ.get(DOORBELL_RATE, "150"))))


def write_down(job: Job, what: str) -> None:
    """One write, which goes to the end of the file whoever else writes there."""
    file = os.open(os.environ[RUNS], os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{job.id} {job.attempt} {what}\n".encode())
    os.close(file)


def runs(file: Path, what: str = "ended") -> list[int]:
    """The jobs that began or ended, as often as they did."""
    lines = (line.split() for line in file.read_text().splitlines())
    return [int(job) for job, _, word in lines if word == what]


@app.job("note")
async def note(payload: int, job: Job) -> int:
    """Ends at once."""
    write_down(job, "ended")
    return payload


@app.job("detour")
async def detour(payload: int, job: Job) -> int | HandlerOutcome:
    """Ends after a snooze, a retry and some progress."""
    write_down(job, "began")
    if job.data is None:
        return Snooze(0.01, data="snoozed")
    if job.attempt == 1:
        return Retry(after=0.01)
    await job.progress(0.5, "half")
    write_down(job, "ended")
    return payload


@app.job("hold", timeout=None)
async def hold(payload: str, job: Job) -> str:
    """Runs until a file is there."""
    write_down(job, "began")
    gate = Path(payload)
    while not gate.exists():  # noqa: ASYNC240
        await asyncio.sleep(0.02)
    write_down(job, "ended")
    return f"attempt {job.attempt}"
