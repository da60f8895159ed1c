"""Handlers that cannot be unwound, as a process imports them."""

from __future__ import annotations

import asyncio
from typing import Any

from hybrid_runner import ConfigurationError, Job, Repeat, Runner, Snooze

app = Runner()


async def _signal(job: Job) -> Any:
    return await job.signal("k")


def _wait(job: Job) -> Any:
    """Try to call `job.signal`, with and without a loop of one's own, then wait as one can."""
    if job.snoozes:
        said = job.data
        return [*said, job.signalled, job.timed_out]
    said = list[str]()
    for call in (lambda: job.signal("k"), lambda: asyncio.run(_signal(job))):
        try:
            call()
        except ConfigurationError as error:
            said.append(str(error))
    return Snooze("1h", wake_on="k", data=said)


@app.job("sync-thread", executor="thread")
def in_thread(payload: dict[str, Any], job: Job) -> Any:
    """In a thread."""
    return _wait(job)


@app.job("sync-process", executor="process")
def in_process(payload: dict[str, Any], job: Job) -> Any:
    """In a process."""
    return _wait(job)


@app.job("repeat-thread", executor="thread")
def repeat_in_thread(payload: Any, job: Job) -> Repeat:
    """In a thread."""
    return Repeat("1h", data=[job.signalled], wake_on="k")


@app.job("repeat-process", executor="process")
def repeat_in_process(payload: Any, job: Job) -> Repeat:
    """In a process."""
    return Repeat("1h", data=[job.signalled], wake_on="k")
