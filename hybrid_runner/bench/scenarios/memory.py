"""What running jobs hold in memory, beside a worker that runs none."""

from __future__ import annotations

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import BenchError
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes

_MIB = 2**20


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Let more and more handlers wait, and read the worker's memory at each size."""
    most = max(sizes.memory_jobs)
    await database.clear()
    async with database.worker(slots=most) as worker:
        await pickups(database, worker, 1)  # whatever is loaded at the first job
        held = {0: memory_of(worker.pid)}
        for number, jobs in enumerate(sorted(sizes.memory_jobs)):
            tell(number / len(sizes.memory_jobs), f"{jobs:,} running jobs")
            await database.fill("wait", jobs - max(held))
            await worker.ask(f"expect wait {jobs}")
            held[jobs] = memory_of(worker.pid)
        worker.tell("release")
        await database.must_be_empty(worker.name)
    figures = [
        Figure(f"{jobs:,} running jobs", "MiB", held[jobs], "none running", held[0])
        for jobs in sorted(sizes.memory_jobs)
    ]
    figures.append(Figure("each 1,000 running jobs", "MiB", (held[most] - held[0]) / most * 1000))
    return Result(tuple(figures), {"mib": {str(jobs): held[jobs] for jobs in held}})


def memory_of(pid: int) -> float:
    """MiB that a process holds in memory; BenchError where that cannot be known."""
    if (held := processor.memory_of(pid)) is None:
        raise BenchError("memory can be measured only where there is a /proc")
    return held / _MIB
