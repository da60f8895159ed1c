"""How many single-row INSERTs many clients can do; beside a table without a trigger, and one that
notifies at every insert.
"""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.pgbench import inserts_per_second
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes

OURS, QUIET, LOUD = "hybrid_runner.jobs", "hybrid_runner_bench.quiet", "hybrid_runner_bench.loud"
INSERT = "INSERT INTO {} (queue, kind) VALUES ('bench', 'noop')"


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Every combination, the three tables in turn."""
    cases = list(
        itertools.product((False, True) if database.superuser else (False,), sizes.producer_clients)
    )
    figures, points = [], []
    for number, (imitated, clients) in enumerate(cases):
        words = f"{clients} clients{', 1 ms flush' if imitated else ''}"
        tell(number / len(cases), words)
        async with database.copies(), database.flush(imitated=imitated):
            rates: dict[str, list[float]] = {QUIET: [], OURS: [], LOUD: []}
            for _, table in itertools.product(range(sizes.producer_rounds), rates):
                rates[table].append(await rate_of(database, table, clients, sizes.producer_seconds))
        quiet, ours, loud = (median(rates[table]) for table in (QUIET, OURS, LOUD))
        figures += [
            Figure(words, "inserts/s", ours, "no trigger", quiet),
            Figure(words, "inserts/s", ours, "NOTIFY at every insert", loud),
        ]
        points.append(
            {
                "clients": clients,
                "flush": imitated,
                "ours": ours,
                "no_trigger": quiet,
                "notify": loud,
                "rounds": rates,
            }
        )
    return Result(tuple(figures), {"seconds": sizes.producer_seconds, "points": points})


async def rate_of(database: BenchDatabase, table: str, clients: int, seconds: float) -> float:
    """INSERTs per second into one of the tables; into ours while a worker runs what arrives."""
    await database.clear()
    await database.connection.execute(f"TRUNCATE {table}")
    async with AsyncExitStack() as stack:
        if table == OURS:
            await stack.enter_async_context(database.worker())
        return await inserts_per_second(database.dsn, INSERT.format(table), clients, seconds)
