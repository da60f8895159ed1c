"""From INSERT to handler while somebody sends the worker a thousand forged messages a second, and
what the worker spends on them; beside the same worker left alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE
from hybrid_runner.model.messages import channel_of
from hybrid_runner.storage.connections.connection import connect

WORDS = {
    "rings": "%",
    "later": "later %",
    "help": "help %",
    "here": "here somebody-%",
    "gone": "gone somebody-%",
    "pass": "pass now % 0",
    "cancel": "cancel %",
}
"""A message of each kind; % is another number each time."""
_A_SECOND = 1000
_AT_ONCE = 2
_FLOOD_AT_ONCE = 5000
_SETTLING = 1.0
"""Seconds under forged messages before anything is counted: what may be done at once is used up."""


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """One worker: left alone first, then with each kind of message, then with a flood."""
    figures: list[Figure] = []
    latencies: dict[str, list[int]] = {}
    await database.clear()
    async with database.worker() as worker:
        await pickups(database, worker, 20)
        latencies["alone"] = await pickups(database, worker, sizes.pickups)
        alone, _ = p50_p99(latencies["alone"])
        for number, (name, word) in enumerate(WORDS.items()):
            tell((number + 1) / (len(WORDS) + 2), f"{_A_SECOND} forged {name} a second")
            async with forging(database.dsn, word, _AT_ONCE, _AT_ONCE / _A_SECOND) as forged:
                await asyncio.sleep(_SETTLING)
                used, began, before = _seconds_of(worker), time.monotonic(), next(forged)
                latencies[name] = await pickups(database, worker, sizes.pickups)
                seconds = time.monotonic() - began
                share = (_seconds_of(worker) - used) / seconds
                rates[name] = (next(forged) - before) / seconds
            p50, _ = p50_p99(latencies[name])
            figures += [
                Figure(f"{name}, p50", "ms", p50, "left alone", alone),
                Figure(f"{name}, worker's processor time", "% of a core", share * 100),
            ]
        tell(0.9, "a flood")
        async with forging(database.dsn, "here somebody-%", _FLOOD_AT_ONCE, 0.0):
            used, began = _seconds_of(worker), time.monotonic()
            latencies["flood"] = await pickups(
                database, worker, sizes.forged_flood_pickups, pause=_SETTLING
            )
            share = (_seconds_of(worker) - used) / (time.monotonic() - began)
        p50, _ = p50_p99(latencies["flood"])
        figures += [
            Figure("flood, p50", "ms", p50, "left alone", alone),
            Figure("flood, worker's processor time", "% of a core", share * 100),
        ]
    return Result(tuple(figures), {"pickups": sizes.pickups, "microseconds": latencies})


@asynccontextmanager
async def forging(dsn: str, word: str, at_once: int, pause: float) -> AsyncIterator[None]:
    """Send so many messages each time, until the block ends."""

    async def send() -> None:
        channel, began, sent = channel_of(QUEUE).name, time.monotonic(), 0
        while True:
            await connection.execute(text("forge"), channel, word, sent * at_once, at_once)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * pause - time.monotonic()))

    connection = await connect(dsn)
    sending = asyncio.create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        connection.terminate()


def _seconds_of(worker: Child) -> float:
    return processor.seconds_of_threads(worker.pid) or 0.0
