"""From INSERT to handler at a steady rate, and what it costs; beside an idle bare listener of the
same run.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes

_FLOOR = "LISTEN and one claim, idle"


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Each rate, with plain commits and with the imitated flush."""
    figures, points = [], []
    cases = list(
        itertools.product((False, True) if database.superuser else (False,), sizes.paced_rates)
    )
    floors: dict[bool, tuple[float, float]] = {}
    for number, (imitated, rate) in enumerate(cases):
        words = f"{rate:,}/s{', 1 ms flush' if imitated else ''}"
        tell(number / len(cases), words)
        async with database.flush(imitated=imitated):
            if imitated not in floors:
                floors[imitated] = await floor(database, sizes)
            await database.clear()
            async with (
                database.worker() as worker,
                database.producer(sizes.paced_connections) as producer,
            ):
                await pickups(database, worker, 1)
                point = await at_a_pace(database, worker, producer, rate, sizes.paced_seconds)
        points.append(
            {"rate": rate, "flush": imitated, "floor_p50_ms": floors[imitated][0]} | point
        )
        figures += [
            Figure(f"{words}, p50", "ms", point["p50_ms"], _FLOOR, floors[imitated][0]),
            Figure(f"{words}, p99", "ms", point["p99_ms"], _FLOOR, floors[imitated][1]),
            Figure(f"{words}, reached", "jobs/s", point["reached"], "asked for", rate),
        ]
        if point["worker_cpu"] is not None:
            figures.append(
                Figure(
                    f"{words}, worker",
                    "cores",
                    point["worker_cpu"],
                    "all of Postgres",
                    point["server_cpu"],
                )
            )
    return Result(
        tuple(figures),
        {"seconds": sizes.paced_seconds, "connections": sizes.paced_connections, "points": points},
    )


async def floor(database: BenchDatabase, sizes: Sizes) -> tuple[float, float]:
    """p50 and p99 of a bare listener, in milliseconds."""
    await database.clear()
    async with database.bare() as bare:
        return p50_p99(await pickups(database, bare, min(100, sizes.pickups)))


async def at_a_pace(
    database: BenchDatabase, worker: Child, producer: Child, rate: float, seconds: float
) -> dict[str, Any]:
    """Insert for a while; the rate that was reached, how late the handlers were, and shares of one
    processor core.
    """
    worker.tell("clear")
    before, begun = (processor.seconds_of(worker.pid), database.server_seconds()), time.monotonic()
    sent = await producer.ask(f"pace {rate} {seconds}")
    latencies = (await worker.ask(f"expect stamp {sent['sent']}"))["latencies"]
    after, took = (
        (processor.seconds_of(worker.pid), database.server_seconds()),
        time.monotonic() - begun,
    )
    await database.must_be_empty(worker.name)
    p50, p99 = p50_p99(latencies)
    shares = [
        None if b is None or a is None else (a - b) / took
        for b, a in zip(before, after, strict=True)
    ]
    return {
        "reached": sent["sent"] / sent["seconds"],
        "p50_ms": p50,
        "p99_ms": p99,
        "worker_cpu": shares[0],
        "server_cpu": shares[1],
    }
