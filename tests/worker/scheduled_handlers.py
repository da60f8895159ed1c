"""Handlers that say for which tick of which schedule they run."""

from __future__ import annotations

from typing import Any

from hybrid_runner import Job
from tests.support.working import runner

app = runner("postgresql://nobody@127.0.0.1/none")


def said(job: Job) -> list[str | None]:
    return [job.schedule, None if job.tick is None else job.tick.isoformat()]


@app.job("in_the_loop")
async def in_the_loop(_: Any, job: Job) -> list[str | None]:
    return said(job)


@app.job("in_a_thread")
def in_a_thread(_: Any, job: Job) -> list[str | None]:
    return said(job)


@app.job("in_a_process", executor="process")
def in_a_process(_: Any, job: Job) -> list[str | None]:
    return said(job)
