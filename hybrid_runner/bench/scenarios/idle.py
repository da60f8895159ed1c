"""What a worker costs that has nothing to do: statements, and processor time."""

from __future__ import annotations

import asyncio

from hybrid_runner.bench import processor
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text

_FALLING_ASLEEP = 2.0


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """First without a worker, for what the server does by itself; then with one that has run
    something and fell asleep.
    """
    alone, _, counted = await _watch(database, sizes.idle_seconds / 4, None)
    tell(0.2, f"a worker does nothing for {sizes.idle_seconds:.0f} s")
    await database.clear()
    async with database.worker() as worker:
        await pickups(database, worker, 1)
        await asyncio.sleep(min(_FALLING_ASLEEP, sizes.idle_seconds))
        # What comes every ten minutes would be in one run of ten, and then ten times too much.
        await database.connection.execute(
            "UPDATE hybrid_runner.duties SET taken_at = clock_timestamp()"
        )
        with_worker, share, counted = await _watch(database, sizes.idle_seconds, worker.pid)
    figures = [Figure(f"{counted} a minute", "per minute", with_worker - alone)]
    if share is not None:
        figures.append(Figure("worker's processor time", "% of a core", share * 100))
    return Result(
        tuple(figures),
        {
            "seconds": sizes.idle_seconds,
            "alone_per_minute": alone,
            "with_worker_per_minute": with_worker,
        },
    )


async def _watch(
    database: BenchDatabase, seconds: float, pid: int | None
) -> tuple[float, float | None, str]:
    """How much a minute, the share of a processor core, and what was counted."""
    async with database.counting_statements() as precise:
        count = text("statements" if precise else "transactions")
        before, used = (
            await database.connection.fetchval(count),
            processor.seconds_of_threads(pid) if pid else None,
        )
        await asyncio.sleep(seconds)
        after, used_after = (
            await database.connection.fetchval(count),
            processor.seconds_of_threads(pid) if pid else None,
        )
    share = None if used is None or used_after is None else (used_after - used) / seconds
    return (after - before) * 60 / seconds, share, "statements" if precise else "transactions"
