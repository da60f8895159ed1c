"""How many single-row INSERTs many clients can do; beside a table without a trigger, and one that
notifies at every insert.
"""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack

from hybrid_runner.bench.pgbench import inserts_per_second
from hybrid_runner.bench.place import Place
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes

OURS, QUIET, LOUD = "hybrid_runner.jobs", "hybrid_runner_bench.quiet", "hybrid_runner_bench.loud"
INSERT = "INSERT INTO {} (queue, kind) VALUES ('bench', 'noop')"


async def measure(place: Place, sizes: Sizes, tell: Tell) -> Result:
    """Every combination, the three tables in turn."""
    cases = list(
        itertools.product((False, True) if place.superuser else (False,), sizes.producer_clients)
    )
    figures, points = [], []
    for number, (imitated, clients) in enumerate(cases):
        words = f"{clients} clients{', 1 ms flush' if imitated else ''}"
        tell(number / len(cases), words)
        async with place.copies(), place.flush(imitated=imitated):
            rates: dict[str, list[float]] = {QUIET: [], OURS: [], LOUD: []}
            for _, table in itertools.product(range(sizes.producer_rounds), rates):
                rates[table].append(await rate_of(place, table, clients, sizes.producer_seconds))
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


async def rate_of(place: Place, table: str, clients: int, seconds: float) -> float:
    """INSERTs per second into one of the tables; into ours while a worker runs what arrives."""
    await place.clear()
    await place.connection.execute(f"TRUNCATE {table}")
    async with AsyncExitStack() as stack:
        if table == OURS:
            await stack.enter_async_context(place.worker())
        return await inserts_per_second(place.dsn, INSERT.format(table), clients, seconds)
