"""One handler that uses every value of its memory, in the loop, in a thread and in a process."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from hybrid_runner import Backoff, Confirmations, Gate, Job, Runner, Snooze, Tries

app = Runner()
SOON = Backoff("50ms", cap="50ms")


class Step(BaseModel):
    probe: Gate = Gate(most=2)


class Poll(BaseModel):
    idle: Confirmations = Confirmations(times=2, apart=0)
    rows: Tries = Tries(most=2, pace=SOON)
    never: Gate = Gate(after="1h")
    step: Step = Step()


def look(job: Job[Poll]) -> Snooze | str:
    """Confirm, look twice for rows, and end at a look that opened nothing but a local gate."""
    seen = job.data
    seen.never.opens(job)
    seen.step.probe.opens(job)
    if not seen.idle.confirm(job):
        return job.later()
    if (again := seen.rows.again(job)) is not None:
        return again
    Gate().opens(job)
    return "done"


@app.job("in_loop", data=Poll, pace=SOON)
async def in_loop(_: Any, job: Job[Poll]) -> Snooze | str:
    return look(job)


@app.job("in_thread", data=Poll, pace=SOON)
def in_thread(_: Any, job: Job[Poll]) -> Snooze | str:
    return look(job)


@app.job("in_process", data=Poll, pace=SOON, executor="process")
def in_process(_: Any, job: Job[Poll]) -> Snooze | str:
    return look(job)


@app.job("counts_nonsense", executor="process", max_attempts=1)
def counts_nonsense(_: Any, job: Job) -> str:
    """Whatever a handler says to be counted must not end its job."""
    for number in range(2000):
        job.count(object(), f"use {number}")  # type: ignore[arg-type]
    return "done"
