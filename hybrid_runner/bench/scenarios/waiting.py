"""What many jobs cost that wait for something outside: each looks, snoozes, and looks again."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import NamedTuple

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.scenarios.memory import memory_of
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text

_WARM_UP = 2.0
_NEVER = 10**9  # more calls than there can be
_FEW = 100
_BETWEEN = 0.2
"""Seconds between two counts of the slots that are taken."""


class _Cost(NamedTuple):
    """Of one worker; all but percentiles and memory are means of a second."""

    looks: float
    due: float
    p50_ms: float
    p99_ms: float
    worker: float | None
    server: float | None
    mib: float
    slots: float


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Many jobs that look seldom, then as many that look often; beside each, a few that make as
    many looks a second.
    """
    figures, costs = list[Figure](), dict[str, object]()
    for number, every in enumerate(sizes.waiting_every):
        rate = f"{sizes.waiting_jobs / every:,.0f}/s"
        found = {}
        for jobs in (min(_FEW, sizes.waiting_jobs), sizes.waiting_jobs):
            tell(number / len(sizes.waiting_every), f"{jobs:,} jobs wait, {rate} are due")
            pace = every * jobs / sizes.waiting_jobs
            found[jobs] = await _cost(database, jobs, pace, max(pace, sizes.waiting_seconds))
        figures += _figures(rate, *found.values())
        costs[rate] = {str(jobs): cost._asdict() for jobs, cost in found.items()}
    return Result(tuple(figures), {"jobs": sizes.waiting_jobs, "costs": costs})


def _figures(rate: str, few: _Cost, many: _Cost) -> list[Figure]:
    figures = [
        Figure(f"{rate}, looks", "looks/s", many.looks, "jobs that came due", many.due),
        Figure(f"{rate}, from due to handler, p50", "ms", many.p50_ms, f"{_FEW} jobs", few.p50_ms),
        Figure(f"{rate}, from due to handler, p99", "ms", many.p99_ms, f"{_FEW} jobs", few.p99_ms),
        Figure(f"{rate}, slots taken", "slots", many.slots),
        Figure(f"{rate}, memory of the worker", "MiB", many.mib, f"{_FEW} jobs", few.mib),
    ]
    if many.worker and many.server:
        figures.append(
            Figure(f"{rate}, worker", "cores", many.worker, "all of Postgres", many.server)
        )
    return figures


async def _cost(database: BenchDatabase, jobs: int, pace: float, seconds: float) -> _Cost:
    await database.clear()
    async with database.worker() as worker:
        await database.connection.execute(text("fill_waiting"), jobs, pace)
        await worker.ask(f"expect poll {_NEVER} {_WARM_UP}")
        worker.tell("clear")
        before = await _counts(database, worker)
        begun, slots = time.monotonic(), list[int]()
        noted = asyncio.create_task(worker.ask(f"expect poll {_NEVER} {seconds}"))
        while not noted.done():
            slots.append(await database.connection.fetchval(text("running")))
            await asyncio.wait([noted], timeout=_BETWEEN)
        latencies = (await noted)["latencies"]
        after, took = await _counts(database, worker), time.monotonic() - begun
        mib = memory_of(worker.pid)
    looks, cores, server = (
        None if one is None or other is None else (other - one) / took
        for one, other in zip(before, after, strict=True)
    )
    due = len(latencies) / took
    return _Cost(looks or 0, due, *p50_p99(latencies), cores, server, mib, statistics.mean(slots))


async def _counts(
    database: BenchDatabase, worker: Child
) -> tuple[float, float | None, float | None]:
    """Looks, and processor seconds of the worker and of the server, so far."""
    return (
        (await worker.ask("looks"))["looks"],
        processor.seconds_of(worker.pid),
        database.server_seconds(),
    )
