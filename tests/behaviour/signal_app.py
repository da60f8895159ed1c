"""A job that waits for a signal, for workers that are killed after it was given to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hybrid_runner import Job, RetryPolicy, Runner, Snooze

app = Runner()
QUICK = RetryPolicy("10ms", "20ms")


def is_first(file: Path) -> bool:
    """Whether nobody has made the file yet; it is made."""
    was_there = file.exists()
    file.touch()
    return not was_there


@app.job("hang-once", retry=QUICK)
async def hang_once(payload: dict[str, str], job: Job) -> Any:
    """Wait for two signals; the first attempt that was given one says so and hangs."""
    if payload["way"] == "wake_on" and not job.snoozes:
        return Snooze("1h", wake_on=payload["key"])
    first = job.signalled if payload["way"] == "wake_on" else await job.signal(payload["key"])
    if is_first(Path(payload["file"])):
        await asyncio.Event().wait()
    return first
