"""The app of the test that kills workers whose jobs leave others behind."""

from __future__ import annotations

import asyncio
from typing import Any

from hybrid_runner import Fail, Job, NewJob, Runner

app = Runner()


@app.job("start", max_attempts=1000, limits="default", on_end="clean-up", timeout=None)
async def start(run: int, job: Job) -> Any:
    """Leaves a follow-up without a key: whatever is stored twice is there twice."""
    await asyncio.sleep(0.01 * (run % 7))
    follow_up = NewJob("poll", str(run))
    if run % 2:
        return Fail("by its own word", then=follow_up)
    job.then("poll", run)
    return run
