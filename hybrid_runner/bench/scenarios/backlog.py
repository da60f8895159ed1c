"""From INSERT to handler of an urgent job: before a large backlog that is being worked on, and
before many that are not due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.storage.connections.connection import connect

SMALL = 2_000
_TOP_UP_EVERY = 0.02
_PAUSE = 0.05


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Measure the same inserts beside an idle queue and three kinds of backlog."""
    latencies: dict[str, list[int]] = {}
    for number, name in enumerate(("idle", "scheduled", "small", "large")):
        tell(number / 4, f"{name} backlog")
        await database.clear()
        if name == "scheduled":
            await database.fill("noop", sizes.backlog_jobs, delay=timedelta(hours=1))
        elif name == "large":
            await database.fill("noop", sizes.backlog_jobs, priority=9)
        await database.vacuum()
        async with database.worker() as worker, _topped_up(database.dsn, on=name == "small"):
            latencies[name] = await pickups(
                database, worker, sizes.backlog_pickups, insert="insert_urgent", pause=_PAUSE
            )
            left = await database.left()
            if name == "large" and left < SMALL:
                tell(
                    0.99,
                    "the large backlog was worked off before the end: its figure is that of an idle"
                    " queue",
                )
    p50 = {name: p50_p99(values)[0] for name, values in latencies.items()}
    p99 = {name: p50_p99(values)[1] for name, values in latencies.items()}
    jobs = f"{sizes.backlog_jobs:,}"
    figures = (
        Figure(
            f"{jobs} due, being drained, p50",
            "ms",
            p50["large"],
            f"{SMALL:,} due, being drained",
            p50["small"],
        ),
        Figure(
            f"{jobs} due, being drained, p99",
            "ms",
            p99["large"],
            f"{SMALL:,} due, being drained",
            p99["small"],
        ),
        Figure(f"{jobs} due, being drained, p50", "ms", p50["large"], "an idle queue", p50["idle"]),
        Figure(f"{jobs} due in an hour, p50", "ms", p50["scheduled"], "an idle queue", p50["idle"]),
    )
    return Result(
        figures,
        {"jobs": sizes.backlog_jobs, "p50_ms": p50, "p99_ms": p99, "microseconds": latencies},
    )


@asynccontextmanager
async def _topped_up(dsn: str, *, on: bool) -> AsyncIterator[None]:
    """Keep about SMALL jobs queued until the block ends."""
    if not on:
        yield
        return
    connection = await connect(dsn)

    async def top_up() -> None:
        while True:
            await connection.execute(text("top_up"), SMALL)
            await asyncio.sleep(_TOP_UP_EVERY)

    topping = asyncio.create_task(top_up())
    try:
        yield
    finally:
        topping.cancel()
        await asyncio.wait([topping])
        connection.terminate()
