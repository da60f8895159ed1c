"""Rings in a fleet of real workers: few look for each, and those who cannot pass it on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from hybrid_runner import Worker
from hybrid_runner.policy.ranking import place
from hybrid_runner.storage.connections import Connection
from tests.support.bells import (
    INSERT,
    Handlers,
    found_without_poll,
    listeners_pid,
    seen,
    until,
    until_asleep,
    until_mode,
)
from tests.support.rings import listening


class Fleet:
    """Workers that know each other; each has a kind of its own to fill one slot."""

    def __init__(self, handlers: list[Handlers], workers: list[Worker]) -> None:
        self.workers = workers
        self._handlers = {worker.id: jobs for worker, jobs in zip(workers, handlers, strict=True)}

    def ranked(self, ringer: int) -> list[Worker]:
        """In the order in which a ring of that session is for them."""
        ids = [worker.id for worker in self.workers]
        return sorted(self.workers, key=lambda worker: place(ringer, worker.id, ids))

    def held(self, worker: Worker) -> asyncio.Event:
        return self._handlers[worker.id].held

    def let_all_go(self) -> None:
        for jobs in self._handlers.values():
            jobs.let_go.set()

    async def next(self) -> int:
        """The id of the next job that any of them ran."""
        waiting = [asyncio.ensure_future(jobs.next()) for jobs in self._handlers.values()]
        done, late = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return done.pop().result()

    def looks(self) -> int:
        return sum(seen(worker).looks for worker in self.workers)


@asynccontextmanager
async def fleet(dsn: str, database: Connection, size: int, slots: int) -> AsyncIterator[Fleet]:
    handlers = [Handlers(dsn, hold=f"hold-{n}", heartbeat="300ms") for n in range(size)]
    async with AsyncExitStack() as stack:
        workers = []
        for n, jobs in enumerate(handlers):
            await stack.enter_async_context(jobs.app)
            workers.append(await stack.enter_async_context(jobs.app.worker({"default": slots}, worker_id=f"worker-{n}")))
        await until(lambda: all(len(worker._work["default"].members) == size for worker in workers))
        await until_asleep(database, *workers)
        yield Fleet(handlers, workers)


async def test_of_a_sleeping_fleet_few_look_for_one_ring(dsn: str, database: Connection) -> None:
    async with fleet(dsn, database, 8, slots=5) as workers:
        looks = workers.looks()
        job_id = await database.fetchval(INSERT, "note")
        assert await workers.next() == job_id
        await until(lambda: workers.looks() >= looks + 3)  # two at once, one a moment later
        for worker in workers.workers:
            await listeners_pid(worker)  # what was rung before has arrived
            await until_mode(worker, "asleep")
        assert workers.looks() == looks + 3
        found_without_poll(*workers.workers)


async def test_those_whom_a_ring_is_for_pass_it_on_when_they_are_full(dsn: str, database: Connection) -> None:
    async with fleet(dsn, database, 8, slots=1) as workers, listening(dsn) as rings:
        ringer = database.get_server_pid()
        first, second, *others = workers.ranked(ringer)
        for worker in (first, second):
            await database.fetchval(INSERT, worker.id.replace("worker", "hold"))
            await asyncio.wait_for(workers.held(worker).wait(), 10)
            await until(lambda worker=worker: worker._work["default"].claimer._wake.resting.is_set())  # type: ignore[misc]
        assert [seen(worker).mode for worker in (first, second)] == ["full", "full"]
        await until_asleep(database, *others)
        job_id = await database.fetchval(INSERT, "note")
        assert await workers.next() == job_id
        for worker in (first, second):
            await listeners_pid(worker)  # behind what it rang
        assert {f"pass now {ringer} 2", f"pass now {ringer} 3"} <= set(await rings.so_far())
        workers.let_all_go()
        found_without_poll(*workers.workers)
