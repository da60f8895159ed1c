"""How fast one worker does the work of an application's own rows; beside jobs of nobody's table,
with one attached beside them and with none.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.orders import KIND, attached, empty, fill, tables
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes

NONE, BESIDE, ROWS = "jobs, nothing attached", "jobs, a table attached", "rows of that table"


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Alternate, so that a busy moment of the machine meets all of them."""
    rates: dict[str, list[float]] = {NONE: [], BESIDE: [], ROWS: []}
    costs: dict[str, list[float]] = {NONE: [], BESIDE: [], ROWS: []}
    async with tables(database):
        await database.clear()
        async with database.worker() as worker:
            start = processor.seconds_of_threads(worker.pid) or 0.0
        for turn in range(sizes.rounds):
            for number, name in enumerate(rates):
                tell((turn + number / 3) / sizes.rounds, f"round {turn + 1}: {name}")
                rate, cost = await _drain(database, name, sizes.attached_rows, start)
                rates[name].append(rate)
                if cost is not None:
                    costs[name].append(cost)
    figures = [
        Figure(name, "jobs/s", median(rates[name]), NONE, median(rates[NONE]))
        for name in (BESIDE, ROWS)
    ]
    if costs[NONE]:
        figures += [
            Figure(
                f"{name}, processor time", "µs/job", median(costs[name]), NONE, median(costs[NONE])
            )
            for name in (BESIDE, ROWS)
        ]
    return Result(
        tuple(figures), {"rows": sizes.attached_rows, "rounds": rates, "microseconds": costs}
    )


async def _drain(
    database: BenchDatabase, name: str, rows: int, start: float
) -> tuple[float, float | None]:
    """Jobs per second from the first handler to the last, and the microseconds of processor time
    that each took, Postgres and the worker together, without what the worker takes to start.
    """
    await empty(database)
    async with AsyncExitStack() as stack:
        if name != NONE:
            await stack.enter_async_context(attached(database))
        if name == ROWS:
            await fill(database, rows)
        else:
            await database.fill("noop", rows)
        await database.vacuum()
        before = database.server_seconds()
        async with database.worker() as worker:
            kind = KIND if name == ROWS else "noop"
            marks: list[int] = (await worker.ask(f"expect {kind} {rows}"))["marks"]
            await database.must_be_empty(worker.name)
            used = _used(database, worker, before)
    rate = (rows - 1) / ((marks[-1] - marks[0]) / 1e9)
    return rate, None if used is None else (used - start) / rows * 1e6


def _used(database: BenchDatabase, worker: Child, before: float | None) -> float | None:
    """Processor seconds since then, of Postgres and of the worker."""
    after, own = database.server_seconds(), processor.seconds_of_threads(worker.pid)
    return None if before is None or after is None or own is None else after - before + own
