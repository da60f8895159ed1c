"""The cost of jobs that keep coming due one by one, as snoozing jobs do: looks, lateness,
processor time.
"""

from __future__ import annotations

import time

from hybrid_runner.bench import processor
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.sizes import Sizes

_WARM_UP = 2.0
_NEVER = 10**9  # more calls than there can be


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """As many jobs as come due in a second; each snoozes for about a second, again and again."""
    rounds = []
    for number in range(sizes.rounds):
        tell(number / sizes.rounds, f"round {number + 1}")
        rounds.append(await _round(database, sizes))
    looks, jobs, p50, p99, worker, server = (
        sorted(column)[len(rounds) // 2] for column in zip(*rounds, strict=True)
    )
    figures = [
        Figure("looks", "looks/s", looks, "jobs that came due", jobs),
        Figure("from due to handler, p50", "ms", p50),
        Figure("from due to handler, p99", "ms", p99),
    ]
    if worker and server:
        figures.append(Figure("worker", "cores", worker, "all of Postgres", server))
    return Result(
        tuple(figures),
        {"jobs": sizes.trickle_jobs, "seconds": sizes.trickle_seconds, "rounds": rounds},
    )


async def _round(database: BenchDatabase, sizes: Sizes) -> tuple[float, ...]:
    """Looks and jobs a second, p50 and p99 in milliseconds, cores of the worker and of the
    server.
    """
    await database.clear()
    await database.fill("again", sizes.trickle_jobs)
    async with database.worker() as worker:
        await worker.ask(f"expect again {_NEVER} {min(_WARM_UP, sizes.trickle_seconds)}")
        worker.tell("clear")
        before, begun = (await worker.ask("looks"))["looks"], time.monotonic()
        used = processor.seconds_of(worker.pid), database.server_seconds()
        latencies = (await worker.ask(f"expect again {_NEVER} {sizes.trickle_seconds}"))[
            "latencies"
        ]
        looks, took = (await worker.ask("looks"))["looks"] - before, time.monotonic() - begun
        used_now = processor.seconds_of(worker.pid), database.server_seconds()
    shares = (
        ((after or 0.0) - (at_first or 0.0)) / took
        for at_first, after in zip(used, used_now, strict=True)
    )
    return looks / took, len(latencies) / took, *p50_p99(latencies), *shares
