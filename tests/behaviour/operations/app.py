"""Handlers that end in every way. Each run writes down its claim, outside any transaction."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from typing import Any

from pydantic import BaseModel

from hybrid_runner import Ended, Fail, Job, Retry, RetryPolicy, Runner, Snooze
from hybrid_runner.embedded.account import die_with_parent
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.behaviour.rows.handlers import handle_rows
from tests.support import inside

_SOON = RetryPolicy(base=0.05, cap=0.3)
_ATTEMPTS = 3

die_with_parent(os.getppid(), signal.SIGKILL)  # tests that are killed leave nobody behind
app = Runner()
handle_rows(app)


class Work(BaseModel):
    """The payload of every kind."""

    mark: int


class Notes:
    """One connection of this process, on which each run is written down as it begins."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()

    async def began(self, job: Job, mark: int) -> None:
        async with self._lock:
            if self._connection is None:
                self._connection = await connect(app.dsn)
            await self._connection.execute(
                "INSERT INTO operations.runs (id, claim, attempt, mark) VALUES ($1, $2, $3, $4)",
                job.id,
                inside.claim_number(job),
                job.attempt,
                mark,
            )


notes = Notes()


class Undone(Exception):
    """Rolls a transaction back."""


async def complete_itself(job: Job, *, roll_back: bool = False) -> None:
    """The work and its completion in one transaction of the handler's own."""
    connection = await connect(app.dsn)
    try:
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO operations.effects (id, claim) VALUES ($1, $2)",
                job.id,
                inside.claim_number(job),
            )
            await job.complete(connection=connection)
            if roll_back:
                raise Undone
    finally:
        await connection.close()


@app.job("returns", max_attempts=_ATTEMPTS, retry=_SOON)
async def returns(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)


@app.job("naps", on_end="clean_up", max_attempts=_ATTEMPTS, retry=_SOON)
async def naps(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    await asyncio.sleep(random.uniform(0, 0.5))


@app.job("raises", max_attempts=_ATTEMPTS, retry=_SOON)
async def raises(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    if random.random() < 0.5:
        raise ConnectionError("not this time")


@app.job("refuses", on_end="clean_up", max_attempts=_ATTEMPTS, retry=_SOON)
async def refuses(work: Work, job: Job) -> Fail:
    await notes.began(job, work.mark)
    return Fail("never")


@app.job("snoozes", on_end="clean_up", max_attempts=_ATTEMPTS, retry=_SOON)
async def snoozes(work: Work, job: Job) -> Snooze | None:
    await notes.began(job, work.mark)
    return Snooze(0.1) if job.snoozes < 2 else None


@app.job("asks_again", max_attempts=_ATTEMPTS, retry=_SOON)
async def asks_again(work: Work, job: Job) -> Retry | None:
    await notes.began(job, work.mark)
    return Retry(after=0.1) if job.attempt < 2 else None


@app.job("lingers", max_attempts=_ATTEMPTS, retry=_SOON)
def lingers(work: Work) -> int:
    time.sleep(random.uniform(0, 0.8))
    return work.mark


@app.job("completes_itself", max_attempts=_ATTEMPTS, retry=_SOON)
async def completes_itself(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    await complete_itself(job)


@app.job("rolls_back", max_attempts=_ATTEMPTS, retry=_SOON)
async def rolls_back(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    try:
        await complete_itself(job, roll_back=True)
    except Undone:
        return


@app.job("raises_after_completing", max_attempts=_ATTEMPTS, retry=_SOON)
async def raises_after_completing(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    await complete_itself(job)
    raise ConnectionError("after the commit")


@app.job("gathers", max_attempts=_ATTEMPTS, retry=_SOON)
async def gathers(work: Work, job: Job) -> dict[str, list[int]] | Snooze:
    """Waits for signals until one does not come in time."""
    await notes.began(job, work.mark)
    marks = list(job.data or [])
    if job.data is not None:
        if job.timed_out:
            return {"marks": marks}
        marks.append(job.signalled)
    return Snooze(0.7, wake_on=f"go {job.id}", data=marks)


@app.job("starts", max_attempts=_ATTEMPTS, retry=_SOON)
async def starts(work: Work, job: Job) -> None:
    await notes.began(job, work.mark)
    job.then("child", {"of": job.id, "claim": inside.claim_number(job)})


@app.job("child")
async def child(_: dict[str, int]) -> None:
    """The job that follows `starts`."""


@app.job("clean_up")
async def clean_up(ended: Ended[Work, Any]) -> str:
    """How the job ended that this one follows."""
    return ended.state
