"""Random callers beside random ends, crashes and retries: nothing is lost, never two at a time."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import KeyLimits, NewJob, OnConflict, State
from hybrid_runner.model.settlements import Finished, Requeued, Settlement
from hybrid_runner.storage import claim_calls, client_calls, key_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, living
from tests.support.waiting import until_fetched

Another = Callable[[], Awaitable[Connection]]
KEYS = ("a", "b")


class History:
    """What callers were promised, and what runs saw."""

    def __init__(self) -> None:
        self.promised: dict[str, list[int]] = {key: [] for key in KEYS}
        """In the order of their commits."""
        self.seen: dict[str, list[Any]] = {key: [] for key in KEYS}
        """The payloads of runs that were completed, in their order."""
        self.running: dict[str, int] = {}
        self.numbers = iter(range(1, 10**6))

    def begin(self, key: str, job_id: int) -> None:
        assert key not in self.running, f"two at a time for {key}"
        self.running[key] = job_id

    def end(self, key: str) -> None:
        del self.running[key]


async def calls(on: Connection, how: OnConflict, said: History, chance: random.Random) -> None:
    """Some calls, in transactions that stay open, are rolled back, or see an old snapshot."""
    for _ in range(12):
        numbers = {key: next(said.numbers) for key in chance.sample(KEYS, chance.choice((1, 1, 2)))}
        is_old = chance.random() < 0.3
        transaction = on.transaction(isolation="repeatable_read" if is_old else "read_committed")
        await transaction.start()
        try:
            await on.fetch("SELECT count(*) FROM hybrid_runner.jobs")
            for key in sorted(numbers):
                job = NewJob("work", json.dumps(numbers[key]), key=key)
                limits = KeyLimits(max_items=3 if how == "collect" else None)
                await client_calls.enqueue_job(on, job, how, limits)
                await asyncio.sleep(chance.choice((0, 0, 0.01, 0.06)))
        except RunnerError:  # of an old snapshot, or in a circle of callers
            await transaction.rollback()
            continue
        if chance.random() < 0.2:
            await transaction.rollback()
            continue
        await transaction.commit()
        for key, number in numbers.items():
            said.promised[key].append(number)


async def works(
    on: Connection,
    name: str,
    said: History,
    chance: random.Random,
    called: asyncio.Event,
    done: asyncio.Event,
) -> None:
    """Claim, begin, and end in every way; a worker that dies leaves what it had to be rescued."""
    idle = 0
    while not done.is_set():
        taken = await claim(on, slots=chance.choice((1, 3)), worker_id=name)
        idle = 0 if taken else idle + 1
        if not taken:  # as a worker does of which somebody held a job that it had claimed
            await claim_calls.release_lost(on, "default", name, [])
        for each in taken:
            await asyncio.sleep(chance.choice((0, 0, 0.005)))
            assert each.key is not None
            key: str | None = each.key
            if each.key.startswith(">"):
                if chance.random() < 0.1:  # it dies before it could ask
                    await claim_calls.release_lost(on, "default", name, [])
                    break
                key = await claim_calls.begin_successor(on, each)
            if key:
                await run(on, key, each, said, chance)
            elif key == "":
                others = [(other.id, other.number) for other in taken if other is not each]
                await claim_calls.release_lost(on, "default", name, others)
        await asyncio.sleep(0.001)
        if called.is_set() and idle % 20 == 19:  # as a duty does
            await key_calls.give_free_keys(on)


async def run(on: Connection, key: str, taken: Claim, said: History, chance: random.Random) -> None:
    """One run; put back some times before it is completed."""
    said.begin(key, taken.id)
    await asyncio.sleep(chance.choice((0, 0.002, 0.02)))
    settlement: Settlement
    if chance.random() < 0.25:
        settlement = Requeued(taken, timedelta(0), charged=chance.random() < 0.5)
        said.end(key)
        assert await claim_calls.requeue_jobs(on, [settlement], None) == {taken.id}
        return
    said.end(key)
    payload = json.loads(taken.payload or "")
    said.seen[key].append(payload)
    state: Any = chance.choice((State.COMPLETED, State.COMPLETED, State.FAILED))
    assert await claim_calls.finish_jobs(on, [Finished(taken, state, result="null")]) == {taken.id}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", ["follow", "collect"])
async def test_after_the_last_call_of_a_burst_a_run_begins_that_sees_it(
    database: Connection, another: Another, how: OnConflict, seed: int
) -> None:
    said, called, done = History(), asyncio.Event(), asyncio.Event()
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    await living(database, "w0", lease=timedelta(hours=1))
    async with asyncio.TaskGroup() as group:
        for n in range(3):
            chance = random.Random(seed + n)
            group.create_task(works(await another(), f"w{n}", said, chance, called, done))
        callers = [
            calls(await another(), how, said, random.Random(100 * seed + n)) for n in range(4)
        ]
        await asyncio.gather(*callers)
        called.set()
        # Whoever met somebody that held a job looks again a second later.
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.jobs", 0)
        done.set()
    for key in KEYS:
        if how == "follow":
            assert not said.promised[key] or said.promised[key][-1] in said.seen[key]
        else:
            # A run that failed has them all the same, in the archive.
            seen = [number for items in said.seen[key] for number in items]
            assert sorted(seen) == sorted(said.promised[key])
