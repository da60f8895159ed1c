"""How fast enqueue_many stores jobs; beside one plain INSERT of the same rows into a copy of the
table without a trigger.
"""

from __future__ import annotations

import time

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE
from hybrid_runner.runner import Runner


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Alternate, each time into empty tables."""
    payloads = [{"number": number} for number in range(sizes.bulk_jobs)]
    texts = [f'{{"number": {number}}}' for number in range(sizes.bulk_jobs)]
    rates: dict[str, list[float]] = {"enqueue_many": [], "INSERT": []}
    async with database.copies(), Runner(database.dsn) as app:
        for number in range(sizes.rounds):
            tell(number / sizes.rounds, f"round {number + 1}")
            await database.clear()
            await database.connection.execute("TRUNCATE hybrid_runner_bench.quiet")
            begun = time.perf_counter()
            await database.connection.execute(text("bulk"), texts)
            rates["INSERT"].append(sizes.bulk_jobs / (time.perf_counter() - begun))
            begun = time.perf_counter()
            await app.enqueue_many("noop", payloads, queue=QUEUE)
            rates["enqueue_many"].append(sizes.bulk_jobs / (time.perf_counter() - begun))
    figure = Figure(
        "enqueue_many",
        "jobs/s",
        median(rates["enqueue_many"]),
        "INSERT … unnest, no trigger",
        median(rates["INSERT"]),
    )
    return Result((figure,), {"jobs": sizes.bulk_jobs, "rounds": rates})
