"""Workers under a doorbell, and what can be seen of it.

The fallback poll is minutes away: what it would have to find fails by time-out. `rings.so_far()`
rings itself: it is asked last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from hybrid_runner import Job, Runner, Worker
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.report.status import QueueStatus
from tests.support import inside
from tests.support.waiting import at_least, equals, until
from tests.support.working import runner

FAR_POLLS: dict[str, Any] = {
    "poll_base": "5m",
    "poll_cap": "5m",
    "hybrid_poll_base": "5m",
    "hybrid_poll_cap": "5m",
    "sweep_cost_factor": 0,
}
EASILY_AWAKE: dict[str, Any] = {
    "doorbell_rate": 1e-9,
    "doorbell_rate_window": "1s",
    "falling_pause_max": "20ms",
}
"""One job makes it awake, however busy the machine is; it falls asleep when the test awaits that,
or after 20 s.
"""
MUTED_FOR_LONG: dict[str, Any] = {"mute_lease": "50s"}
"""So that a slow machine cannot let a mute run out. Below a minute: an insert within the
millisecond of such a mute would take it for one that another clock had set, and ring.
"""
INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ($1) RETURNING id"
BELL = "SELECT pg_sequence_last_value(doorbell) FROM hybrid_runner.queues WHERE name = 'default'"
MUTED_FOR = f"SELECT ({BELL}) - (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
SLEEPERS = (
    "SELECT pid FROM hybrid_runner.sleepers AS s WHERE queue = 'default' AND is_asleep"
    " AND EXISTS (SELECT FROM pg_stat_get_activity(s.pid))"
)


class Handlers:
    """A runner whose jobs `note` are noted, and whose jobs `hold` run until `let_go` is set."""

    def __init__(self, dsn: str, hold: str = "hold", **settings: Any) -> None:
        self.app: Runner = runner(dsn, **(FAR_POLLS | settings))
        self.noted: asyncio.Queue[int] = asyncio.Queue()
        self.held = asyncio.Event()
        self.let_go = asyncio.Event()

        @self.app.job("note")
        async def note(payload: dict[str, int], job: Job) -> None:
            self.noted.put_nowait(job.id)

        @self.app.job(hold)
        async def run_until_let_go(payload: dict[str, int]) -> None:
            self.held.set()
            await self.let_go.wait()

    async def next(self) -> int:
        """The id of the next job that ran."""
        return await asyncio.wait_for(self.noted.get(), 120)


def seen(worker: Worker) -> QueueStatus:
    return worker.status().queues[0]


async def until_mode(worker: Worker, mode: str) -> None:
    """Wait until it is in that mode; one that shall sleep has had no job for long."""

    def look() -> str:
        if mode in ("falling", "asleep"):
            inside.forget_what_came(worker)
        return seen(worker).mode

    await until(look, equals(mode))


async def until_looking_as_it_falls(worker: Worker) -> None:
    """Wait until the worker has looked several times while it falls asleep."""
    await until_mode(worker, "falling")
    looks = seen(worker).looks
    await until(lambda: seen(worker).looks > looks + 3)
    assert seen(worker).mode == "falling"


async def until_bell(database: Connection, fits: Callable[[int], bool]) -> int:

    async def look() -> int:
        return int(await database.fetchval(BELL))

    return await until(look, fits)


async def until_asleep(database: Connection, *workers: Worker, kinds_differ: bool = False) -> None:
    """Wait until all of them sleep, with the bell open and a row of sleepers for each.

    They must know each other: a worker that is not known yet makes the kinds differ for a moment.
    """
    ids = {worker.id for worker in workers}
    for worker in workers:
        await until(partial(inside.kinds_differ, worker), equals(kinds_differ))
        await until(partial(inside.members, worker), at_least(ids))
    for worker in workers:
        await until_mode(worker, "asleep")
    assert await database.fetchval(BELL) == 0
    assert len(await database.fetch(SLEEPERS)) == len(workers)


async def listeners_pid(worker: Worker) -> int:
    return int((await inside.ask_listener(worker, "SELECT pg_backend_pid()"))[0][0])


def found_without_poll(*workers: Worker) -> set[str]:
    """The ways by which workers found jobs. Fails if the fallback poll was one of them."""
    assert not any(seen(worker).polls for worker in workers)
    return {way for worker in workers for way, count in seen(worker).found.items() if count}
