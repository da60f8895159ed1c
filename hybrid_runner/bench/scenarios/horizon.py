"""How fast a worker stays while a long transaction keeps vacuum from cleaning up; beside a loop
that claims from the start.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.storage.connections.connection import connect


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Let a worker and the bare loop drain the same queue, each while a transaction stays open."""
    rates: dict[str, list[float]] = {}
    for number, (name, started) in enumerate(
        (("worker", database.worker), ("bare loop", database.bare))
    ):
        tell(number / 2, f"{name} behind a pinned horizon")
        await database.clear()
        await database.fill("noop", sizes.horizon_jobs)
        await database.vacuum()
        async with pinned(database.dsn), started() as child:
            rates[name] = parts_of(await child.ask(f"expect noop {sizes.horizon_jobs}"))
            await database.must_be_empty(child.name)
    kept = {name: _last_fifth(parts) / _first_fifth(parts) for name, parts in rates.items()}
    figures = (
        Figure(
            "worker, last fifth",
            "jobs/s",
            _last_fifth(rates["worker"]),
            "its first fifth",
            _first_fifth(rates["worker"]),
        ),
        Figure("what is left of the rate", "share", kept["worker"], "bare loop", kept["bare loop"]),
    )
    return Result(figures, {"jobs": sizes.horizon_jobs, "rates": rates})


@asynccontextmanager
async def pinned(dsn: str) -> AsyncIterator[None]:
    """Keep a transaction open that has read the database, until the block ends."""
    connection = await connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM hybrid_runner.queues")
            yield
    finally:
        await connection.close()


def parts_of(answer: dict[str, Any]) -> list[float]:
    """Jobs per second in each of the equal shares."""
    marks = answer["marks"]
    share = answer["handled"] / (len(marks) - 1)
    return [share / ((after - before) / 1e9) for before, after in itertools.pairwise(marks)]


def _first_fifth(parts: list[float]) -> float:
    return _mean(parts[: len(parts) // 5])


def _last_fifth(parts: list[float]) -> float:
    return _mean(parts[-(len(parts) // 5) :])


def _mean(rates: list[float]) -> float:
    """The harmonic mean, since each rate is that of equally many jobs."""
    return len(rates) / sum(1 / rate for rate in rates)
