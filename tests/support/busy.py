"""A worker with something to do while its connections are pulled."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hybrid_runner import Job, Runner, Worker
from hybrid_runner.storage.connections.connection import Connection
from tests.support.bells import FAR_POLLS, seen
from tests.support.waiting import until
from tests.support.working import runner

QUICK_BEATS: dict[str, Any] = {"heartbeat": "200ms"}
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind) SELECT $1 FROM generate_series(1, $2::int) RETURNING id"
)
LEFT = "SELECT count(*) FROM hybrid_runner.jobs"
COMPLETED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"


class App:
    """Counts how often each job began. `brief` is quick, `hold` runs until it is let go."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.runner: Runner = runner(dsn, **(FAR_POLLS | settings))
        self.began: Counter[int] = Counter()
        self.holding = 0
        self.let_go = asyncio.Event()
        self.cancelled = False

        @self.runner.job("brief")
        async def brief(payload: dict[str, int], job: Job) -> None:
            self.began[job.id] += 1
            if len(self.began) % 10 == 0:
                await job.progress(0.5, "half way")

        @self.runner.job("hold")
        async def hold(payload: dict[str, int], job: Job) -> str:
            self.began[job.id] += 1
            self.holding += 1
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return "let go"

    @property
    def ran_once(self) -> bool:
        return set(self.began.values()) == {1}


async def ended(worker: Worker, count: int) -> None:
    await asyncio.wait_for(worker.settled(count), 120)


async def hears_again(worker: Worker, database: Connection, count: int) -> None:
    """The event path works: a job is found by its ring, not by a sweep."""
    await asyncio.wait_for(worker.hearing(), 120)
    await asyncio.wait_for(worker.idle(), 120)
    await until(lambda: seen(worker).mode == "asleep")
    rings = seen(worker).found.get("ring", 0)
    await database.fetch(INSERT, "brief", 1)
    await ended(worker, count)
    assert seen(worker).found.get("ring", 0) == rings + 1, seen(worker)
