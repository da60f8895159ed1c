"""How fast one worker, all settings at their defaults, empties a full queue; beside the shortest
loop that could.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Alternate, so that a busy moment of the machine meets all of them."""
    runs: dict[str, Callable[[], AbstractAsyncContextManager[Child]]] = {
        "bare loop": database.bare,
        "plain loop": database.plain,
        "worker": database.worker,
    }
    rates: dict[str, list[float]] = {name: [] for name in runs}
    turns = list(itertools.product(range(sizes.rounds), runs.items()))
    for number, (turn, (name, started)) in enumerate(turns):
        tell(number / len(turns), f"round {turn + 1}: {name}")
        rates[name].append(await drain(database, started, sizes.drain_jobs))
    figures = [
        Figure("worker", "jobs/s", median(rates["worker"]), name, median(rates[name]))
        for name in runs
        if name != "worker"
    ]
    return Result(tuple(figures), {"jobs": sizes.drain_jobs, "rounds": rates})


async def drain(
    database: BenchDatabase, started: Callable[[], AbstractAsyncContextManager[Child]], jobs: int
) -> float:
    """Jobs per second from the first handler to the last."""
    await database.clear()
    await database.fill("noop", jobs)
    await database.vacuum()
    async with started() as child:
        marks: list[int] = (await child.ask(f"expect noop {jobs}"))["marks"]
        await database.must_be_empty(child.name)
    return (jobs - 1) / ((marks[-1] - marks[0]) / 1e9)
