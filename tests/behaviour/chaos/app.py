"""The handlers. Each run is written down as it begins and as it ends, in a file of its process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hybrid_runner import Cancel, Ended, Fail, Job, RetryPolicy, Runner, Snooze
from hybrid_runner.embedded.account import die_with_parent
from tests.behaviour.chaos.journal import FOLDER_VARIABLE, RUNS, Journal
from tests.behaviour.chaos.orders import key_of_signal
from tests.behaviour.rows.handlers import handle_rows
from tests.support import inside

_SOON = RetryPolicy(base=0.1, cap=1)
_OFTEN = 8

die_with_parent(os.getppid(), signal.SIGKILL)  # a harness that is killed leaves nobody behind
app = Runner()
_journal = Journal(Path(os.environ[FOLDER_VARIABLE]) / RUNS.format(os.getpid()))
_numbers = count()
handle_rows(app)


class Work(BaseModel):
    """The payload of every kind."""

    n: int
    seconds: float
    times: int


@dataclass
class Running:
    """One run: how it will have ended if nothing goes wrong, and what it returns."""

    result: dict[str, Any]
    how: str = "returned"


@contextmanager
def written_down(work: Work, job: Job) -> Iterator[Running]:
    """The end is on file before the worker hears of it."""
    claim = inside.claim_number(job)
    name = f"{os.getpid()}-{next(_numbers)}-{time.time_ns()}"
    _journal.write(
        what="began",
        run=name,
        n=work.n,
        id=job.id,
        claim=claim,
        attempt=job.attempt,
        pid=os.getpid(),
        at=time.time(),
    )
    running = Running({"run": name, "claim": claim, "attempt": job.attempt})
    how = "cancelled"
    try:
        yield running
        how = running.how
    except Exception:
        how = "raised"
        raise
    finally:
        _journal.write(what="ended", run=name, how=how, at=time.time())


@app.job("noop", max_attempts=_OFTEN, retry=_SOON)
async def noop(work: Work, job: Job) -> dict[str, Any]:
    with written_down(work, job) as running:
        return running.result


@app.job("nap", on_end="clean_up", max_attempts=_OFTEN, retry=_SOON)
async def nap(work: Work, job: Job) -> dict[str, Any]:
    with written_down(work, job) as running:
        await asyncio.sleep(work.seconds)
        return running.result


@app.job("long_nap", max_attempts=_OFTEN, retry=_SOON)
async def long_nap(work: Work, job: Job) -> dict[str, Any]:
    """Runs as long as a lease, or longer."""
    with written_down(work, job) as running:
        await asyncio.sleep(work.seconds)
        return running.result


@app.job("flaky", max_attempts=_OFTEN, retry=_SOON)
async def flaky(work: Work, job: Job) -> dict[str, Any]:
    """Raises at its first attempts."""
    with written_down(work, job) as running:
        await asyncio.sleep(work.seconds)
        if job.attempt <= work.times:
            raise ConnectionError("not yet")
        return running.result


@app.job("doomed", on_end="clean_up", max_attempts=3, retry=_SOON)
async def doomed(work: Work, job: Job) -> None:
    with written_down(work, job):
        raise LookupError("never")


@app.job("refuse", on_end="clean_up", max_attempts=_OFTEN, retry=_SOON)
async def refuse(work: Work, job: Job) -> Fail:
    with written_down(work, job) as running:
        running.how = "refused"
        return Fail("not this one")


@app.job("quit", on_end="clean_up", max_attempts=_OFTEN, retry=_SOON)
async def quit_job(work: Work, job: Job) -> Cancel:
    with written_down(work, job) as running:
        running.how = "quit"
        return Cancel("nobody wants it")


@app.job("snooze", max_attempts=_OFTEN, retry=_SOON)
async def snooze(work: Work, job: Job) -> dict[str, Any] | Snooze:
    """Counts in its own memory how often it has snoozed."""
    with written_down(work, job) as running:
        await asyncio.sleep(work.seconds)
        snoozed = job.data or 0
        if snoozed < work.times:
            running.how = "snoozed"
            return Snooze(0.1 * work.times, data=snoozed + 1)
        return running.result | {"snoozed": snoozed}


@app.job("block", max_attempts=_OFTEN, retry=_SOON)
async def block(work: Work, job: Job) -> dict[str, Any]:
    with written_down(work, job) as running:
        time.sleep(work.seconds)  # noqa: ASYNC251  # what must not be done, and is
        return running.result


@app.job("thread", max_attempts=_OFTEN, retry=_SOON)
def thread(work: Work, job: Job) -> dict[str, Any]:
    with written_down(work, job) as running:
        time.sleep(work.seconds)
        return running.result


@app.job("gather", max_attempts=_OFTEN, retry=_SOON)
async def gather(work: Work, job: Job) -> dict[str, Any] | Snooze:
    """Waits for so many signals, one after the other; what is not there in time is waited for
    again.
    """
    with written_down(work, job) as running:
        marks = list(job.data or [])
        if job.data is not None and not job.timed_out:
            marks.append(job.signalled)
        if len(marks) < work.times:
            running.how = "snoozed"
            key = key_of_signal(work.n, len(marks))
            return Snooze(max(0.3, work.seconds), wake_on=key, data=marks)
        return running.result | {"marks": marks}


@app.job("start", max_attempts=_OFTEN, retry=_SOON)
async def start(work: Work, job: Job) -> dict[str, Any]:
    """Is followed by another job."""
    with written_down(work, job) as running:
        job.then("child", {"of": job.id, "claim": running.result["claim"]})
        await asyncio.sleep(work.seconds)
        return running.result


@app.job("child")
async def child(_: dict[str, int]) -> None:
    """The job that follows `start`."""


@app.job("clean_up", max_attempts=_OFTEN, retry=_SOON)
async def clean_up(ended: Ended[Work, Any]) -> str:
    """How the job ended that this one follows."""
    return ended.state
