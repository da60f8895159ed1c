"""A worker of the example that kills itself at one of its awaits."""

from __future__ import annotations

import asyncio

import examples.query_runner.app  # noqa: F401  # what it imports, once for all processes
from tests.examples.query_runner.loading import Await, load


def work(dsn: str, warehouse: str, faster: float, point: Await, worker_id: str) -> None:
    """What a process does until it dies."""
    asyncio.run(_work(dsn, warehouse, faster, point, worker_id))


async def _work(dsn: str, warehouse: str, faster: float, point: Await, worker_id: str) -> None:
    jobs = load(dsn, warehouse, faster=faster, dies=point)
    async with jobs.app, jobs.app.worker({jobs.QUEUE: 2}, worker_id=worker_id):
        await asyncio.Event().wait()
