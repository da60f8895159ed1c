"""The handlers of rows. Each run is written down as it begins and ends, in its process's file."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hybrid_runner import Cancel, Fail, Job, RetryPolicy, Runner, Snooze
from hybrid_runner.storage.connections.connection import connect
from tests.behaviour.chaos.journal import FOLDER_VARIABLE, Journal
from tests.behaviour.rows.records import SEEN
from tests.behaviour.rows.table import KIND, QUEUE
from tests.support import inside

_SOON = RetryPolicy(base=0.1, cap=1)
_ATTEMPTS = 8
WAYS = {
    "returns": 12,
    "naps": 10,
    "naps long": 2,
    "raises": 5,
    "refuses": 3,
    "quits": 2,
    "snoozes": 4,
    "edits": 4,
    "completes itself": 4,
}
"""How a handler may end, and how often."""
_numbers = count()


class Order(BaseModel):
    """The row as its handler gets it."""

    id: int
    status: str
    wants: int
    how: str
    seconds: float
    times: int


@dataclass
class Running:
    """One run: what it returns, and how it will have ended if nothing goes wrong."""

    result: dict[str, Any]
    how: str = "returned"


def handle_rows(app: Runner) -> None:
    """Declare the kind with this app."""
    journal = Journal(Path(os.environ[FOLDER_VARIABLE]) / SEEN.format(os.getpid()))

    @app.job(KIND, queue=QUEUE, max_attempts=_ATTEMPTS, retry=_SOON)
    async def order(row: Order, job: Job) -> dict[str, Any] | Fail | Cancel | Snooze | None:
        with _written_down(journal, row, job) as running:
            return await _work(app, row, job, running)


async def _work(
    app: Runner, row: Order, job: Job, running: Running
) -> dict[str, Any] | Fail | Cancel | Snooze | None:
    match row.how:
        case "naps" | "naps long":
            await asyncio.sleep(row.seconds)
        case "raises" if job.attempt <= row.times:
            raise ConnectionError("not yet")
        case "refuses":
            running.how = "refused"
            return Fail("not this one")
        case "quits":
            running.how = "quit"
            return Cancel("nobody wants it")
        case "snoozes" if (snoozed := job.data or 0) < row.times:
            running.how = "snoozed"
            return Snooze(0.2, data=snoozed + 1)
        case "edits":
            await _in_its_own_transaction(app, row, None, running)
        case "completes itself":
            running.how = "completed"
            await _in_its_own_transaction(app, row, job, running)
            return None
    return running.result


async def _in_its_own_transaction(
    app: Runner, row: Order, job: Job | None, running: Running
) -> None:
    """The row changed by the handler itself, perhaps in the transaction that completes its job."""
    connection = await connect(app.dsn)
    try:
        async with connection.transaction():
            await connection.execute("UPDATE shop.orders SET note = 0 WHERE id = $1", row.id)
            await asyncio.sleep(row.seconds)
            if job is not None:
                await job.complete(running.result, connection=connection)
    finally:
        await connection.close()


@contextmanager
def _written_down(journal: Journal, row: Order, job: Job) -> Iterator[Running]:
    """The end is on file before the worker hears of it."""
    claim = inside.claim_number(job)
    name = f"{os.getpid()}-{next(_numbers)}-{time.time_ns()}"
    journal.write(what="began", run=name, row=row.id, wants=row.wants, id=job.id, claim=claim)
    running = Running({"run": name, "wants": row.wants})
    how = "cancelled"
    try:
        yield running
        how = running.how
    except Exception:
        how = "raised"
        raise
    finally:
        journal.write(what="ended", run=name, how=how)
