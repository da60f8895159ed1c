"""What it costs to poll many services: by a job for each host, as monitors do, beside a job for
each service, and beside the requests alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import BenchError, Child, module, started
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.monitoring import Plan
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.display import percentile
from hybrid_runner.storage.monitor_schema import install_monitors

ROUNDS, JOBS, BARE = "a job per host", "a job per service", "the requests alone"
_WAYS = {BARE: "bare", JOBS: "jobs", ROUNDS: "rounds"}
_THERE = "SELECT to_regnamespace('hybrid_monitors') IS NOT NULL"
_LONG = 600.0


class _Counts(NamedTuple):
    """So far."""

    at: float
    jobs: float
    worker: float | None
    server: float | None
    wal: float
    """Bytes."""


class _Cost(NamedTuple):
    """Of one way, per second; processor time in percent of a core."""

    polls: float
    jobs: float
    late: float
    """Milliseconds by which polls of a service were later than its interval: the mean."""
    late_p99: float
    worker: float | None
    server: float | None
    wal: float
    """Kilobytes."""


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Each way warms up until all services were polled twice, so that none is new, and is then
    measured.
    """
    if await database.connection.fetchval(_THERE):
        raise BenchError("there are monitors in this database: give bench an empty one, or none")
    costs: dict[str, _Cost] = {}
    try:
        for number, (name, way) in enumerate(_WAYS.items()):
            tell(number / len(_WAYS), f"{sizes.monitor_services:,} services, {name}")
            costs[name] = await _cost(database, sizes, way)
    finally:
        await database.clear()
        for schema in ("hybrid_monitors", "hybrid_runner_bench"):
            await database.connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    details = {name: cost._asdict() for name, cost in costs.items()}
    return Result(tuple(_figures(costs)), {"services": sizes.monitor_services, "costs": details})


def _figures(costs: dict[str, _Cost]) -> list[Figure]:
    ours, each, alone = costs[ROUNDS], costs[JOBS], costs[BARE]
    figures = [
        Figure("polls", "polls/s", ours.polls, BARE, alone.polls),
        Figure("jobs", "jobs/s", ours.jobs, JOBS, each.jobs),
        Figure("polls are late by, mean", "ms", ours.late, JOBS, each.late),
        Figure("polls are late by, p99", "ms", ours.late_p99, JOBS, each.late_p99),
    ]
    if ours.worker is not None and each.worker is not None and alone.worker is not None:
        beyond = Figure(
            "worker, beyond the requests",
            "% of a core",
            ours.worker - alone.worker,
            JOBS,
            each.worker - alone.worker,
        )
        figures += [Figure("worker", "% of a core", ours.worker, BARE, alone.worker), beyond]
    if ours.server is not None and each.server is not None and alone.server is not None:
        server, beside = ours.server - alone.server, each.server - alone.server
        figures.append(Figure("Postgres", "% of a core", server, JOBS, beside))
    figures.append(Figure("write-ahead log", "kB/s", ours.wal, JOBS, each.wal))
    return figures


async def _cost(database: BenchDatabase, sizes: Sizes, way: str) -> _Cost:
    every = sizes.monitor_every
    await database.clear()
    async with started(
        "the services", module("services", str(sizes.monitor_hosts)), database.dsn
    ) as services:
        plan = Plan(services.first["port"], sizes.monitor_hosts, sizes.monitor_services, every)
        await _fill(database, plan, way)
        await database.vacuum()
        async with _polling(database, plan, way) as worker:
            await asyncio.sleep(every * 2)
            await database.vacuum_all()  # what was filled is not what is measured
            await asyncio.sleep(every / 2)
            services.tell("clear")
            before = await _counts(database, worker)
            await asyncio.sleep(sizes.monitor_seconds)
            after = await _counts(database, worker)
            seen = await services.ask("polls")
    took = after.at - before.at
    late = [(apart - every) * 1000 for apart in seen["apart"]]
    if not late:
        raise BenchError(f"no service was polled twice ({way})")
    return _Cost(
        seen["polls"] / took,
        (after.jobs - before.jobs) / took,
        sum(late) / len(late),
        percentile(late, 0.99),
        _share(before.worker, after.worker, took),
        _share(before.server, after.server, took),
        (after.wal - before.wal) / took / 1000,
    )


async def _fill(database: BenchDatabase, plan: Plan, way: str) -> None:
    urls = [url for number in range(plan.hosts) for url in plan.urls(number)]
    match way:
        case "rounds":
            await install_monitors(database.connection)
            await database.connection.execute(
                text("fill_services"), urls, plan.every, timeout=_LONG
            )
            await database.connection.execute("VACUUM ANALYZE hybrid_monitors.services")
        case "jobs":
            await database.connection.execute("DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE")
            await database.connection.execute(text("standings"))
            await database.connection.execute(
                text("fill_standings"), urls, plan.every, timeout=_LONG
            )


@asynccontextmanager
async def _polling(database: BenchDatabase, plan: Plan, way: str) -> AsyncIterator[Child]:
    command = module("monitoring", way, *map(str, plan))
    async with started("what polls", command, database.dsn) as worker:
        yield worker


async def _counts(database: BenchDatabase, worker: Child) -> _Counts:
    return _Counts(
        time.monotonic(),
        (await worker.ask("jobs"))["jobs"],
        processor.seconds_of(worker.pid),
        database.server_seconds(),
        await database.connection.fetchval(text("wal")),
    )


def _share(before: float | None, after: float | None, took: float) -> float | None:
    return None if before is None or after is None else (after - before) / took * 100
