"""A runner and a worker on a test's own database, and a wait that does not poll."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hybrid_runner import JobCancelled, JobFailed, JobView, Runner, Worker
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.settings import Tuning

QUICK: dict[str, Any] = {
    "grace": 5,
    "slots": 20,
    "hybrid_poll_base": "5m",
    "hybrid_poll_cap": "5m",
}
"""No fallback poll makes up for a ring that was lost, however long a busy machine takes."""


def runner(dsn: str, registry: Registry | None = None, **settings: Any) -> Runner:
    """A runner with quick settings; while rings arrive, fallback polls are far away unless asked
    for.
    """
    tuning = Tuning(
        **{name: settings.pop(name) for name in Tuning.model_fields if name in settings}
    )
    app = Runner(dsn, tuning=tuning, **(QUICK | settings))
    for kind in registry or ():
        app.registry.add(kind)
    return app


@asynccontextmanager
async def working(
    app: Runner, queues: Mapping[str, int] | None = None, *, deaf: bool = False, **options: Any
) -> AsyncIterator[Worker]:
    """A worker that runs and, unless `deaf`, hears rings."""
    async with app, app.worker(queues, **options) as worker:
        if not deaf:
            await asyncio.wait_for(worker.hearing(), 120)
            await worker.idle()
        yield worker


async def outcome(app: Runner, kind: str, payload: Any = None, **options: Any) -> JobView:
    """How a job ended."""
    handle = await app.enqueue(kind, {} if payload is None else payload, **options)
    with contextlib.suppress(JobFailed, JobCancelled):
        await handle.wait(120)
    return await handle.get()
