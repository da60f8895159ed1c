"""What a heartbeat and its questions cost beside many jobs: due ones in other queues and in its
own, and entries of claimed ones that vacuum may not remove.
"""

from __future__ import annotations

import statistics
import time
from datetime import timedelta

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.scenarios.horizon import pinned
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.model.news import LanesRead
from hybrid_runner.policy.lookback import Lookbacks
from hybrid_runner.storage import heartbeat_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import for_heartbeat

_LONG = 600.0
_EVERY = 10.0
"""Seconds between two heartbeats, as far as they know."""
_WORKER = "bench-heartbeat"
OWN = "bench"
"""The queue that `BenchDatabase.fill` fills."""


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Beat beside an empty table, a backlog, and what a pinned horizon leaves behind."""
    await database.clear()
    took = {"alone": await _beats(database, OWN, sizes.beats)}
    tell(0.1, f"beside {sizes.beat_jobs:,} due jobs")
    await database.fill("noop", sizes.beat_jobs, delay=timedelta(hours=-1))
    await database.vacuum()
    took["due in another queue"] = await _beats(database, "elsewhere", sizes.beats)
    took["due in its queue"] = await _beats(database, OWN, sizes.beats)
    for number, (case, delay) in enumerate(
        (("claimed an hour ago", timedelta(hours=-1)), ("claimed just now", timedelta()))
    ):
        tell(0.6 + number / 5, f"{case}, behind a pinned horizon")
        await database.clear()
        await database.fill("noop", sizes.horizon_jobs, delay=delay)
        await database.vacuum()
        async with pinned(database.dsn):
            await database.connection.execute("DELETE FROM hybrid_runner.jobs", timeout=_LONG)
            took[case] = await _beats(database, OWN, sizes.beats)
    await database.clear()
    p50 = {case: 1000 * statistics.median(seconds) for case, seconds in took.items()}
    mean = {case: 1000 * statistics.mean(seconds) for case, seconds in took.items()}
    figures = [
        Figure(f"{case}, {name}", "ms", values[case], "alone", values["alone"])
        for case in took
        if case != "alone"
        for name, values in (("p50", p50), ("mean", mean))
    ]
    return Result(
        tuple(figures),
        {
            "due": sizes.beat_jobs,
            "claimed": sizes.horizon_jobs,
            "p50_ms": p50,
            "mean_ms": mean,
            "seconds": took,
        },
    )


async def _beats(database: BenchDatabase, queue: str, beats: int) -> list[float]:
    """Seconds that each of so many heartbeats and its questions took."""
    connection = await connect(database.dsn, for_heartbeat(10.0))
    try:
        await worker_calls.open_queue(connection, queue, timedelta(minutes=1))
        first, _ = await worker_calls.register_worker(
            connection, _WORKER, "", 0, "", "{}", timedelta(seconds=30)
        )
        lookbacks, took = Lookbacks(), list[float]()
        for number in range(-3, beats):  # the first ones plan, and fill caches
            began = time.perf_counter()
            await _beat(connection, first, queue, lookbacks, number * _EVERY)
            if number >= 0:
                took.append(time.perf_counter() - began)
        await worker_calls.retire_worker(connection, _WORKER, first, in_order=True)
        return took
    finally:
        await connection.close()


async def _beat(
    connection: Connection, first_claim: int, queue: str, lookbacks: Lookbacks, now: float
) -> None:
    await heartbeat_calls.beat(connection, _WORKER, first_claim)
    await heartbeat_calls.ask_news(connection, _WORKER, first_claim)
    lookback = lookbacks.choose(now)
    for one in await heartbeat_calls.ask_queues(connection, [queue], lookback.value):
        if isinstance(one, LanesRead):
            lookbacks.took(lookback, 1, one.took.total_seconds(), now)
