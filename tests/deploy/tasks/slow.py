"""A handler that takes long enough for its worker to be killed, stopped and joined by others
meanwhile; and one that waits in every way there is a figure of.
"""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from hybrid_runner import Backoff, Confirmations, Gate, Job, Runner, Snooze, Tries

app = Runner()


@app.job("slow", queue="images")
async def slow(payload: dict[str, int]) -> int:
    await asyncio.sleep(0.1)
    return payload["n"]


class Seen(BaseModel):
    gate: Gate = Gate()
    idle: Confirmations = Confirmations(times=1, apart=0)
    rows: Tries = Tries(most=1, pace=Backoff("50ms", cap="50ms"))


@app.job("look", queue="images")
async def look(_: dict[str, int], job: Job[Seen]) -> str | Snooze:
    seen = job.data
    seen.gate.opens(job)
    seen.idle.confirm(job)
    if (again := seen.rows.again(job)) is not None:
        return again
    return "late" if job.timed_out else Snooze("1s", wake_on="never")


@app.reconcile("10s", kind=look, key="look-{n}")
def missing() -> str:
    return """
        SELECT 1 AS n WHERE EXISTS (SELECT FROM hybrid_runner.archive WHERE kind = 'look')
    """
