"""What becomes of a worker while an application holds some rows of its table locked; beside the
same work while nobody holds any.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from hybrid_runner.bench.child import BenchError, Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.orders import KIND, attached, empty, fill, tables
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.storage.connections.connection import connect

_WRITTEN_WITHIN = 30.0
_PAUSE = 0.01


@dataclass
class Found:
    """What one run brought."""

    mean: float
    """Milliseconds that the settling of a batch took."""
    longest: float
    late: int
    """Rows that were late when the application let go."""
    written_after: float
    """Seconds from its commit until none was."""


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """First nobody holds rows, then the application does."""
    found: dict[str, Found] = {}
    async with tables(database), database.counting_statements() as is_counted:
        if not is_counted:
            raise BenchError("held rows can be measured only where pg_stat_statements counts")
        for number, (name, held) in enumerate((("free", 0), ("held", sizes.held_rows))):
            tell(number / 2, f"{held} of {sizes.held_of} rows are held")
            found[name] = await _run(database, sizes, held)
    free, with_held = found["free"], found["held"]
    figures = (
        Figure("settling a batch, mean", "ms", with_held.mean, "nobody holds rows", free.mean),
        Figure(
            "settling a batch, longest", "ms", with_held.longest, "nobody holds rows", free.longest
        ),
        Figure("rows that were late", "rows", with_held.late, "rows held", sizes.held_rows),
        Figure("from the commit until none is late", "s", with_held.written_after),
    )
    details = {name: vars(one) for name, one in found.items()}
    return Result(figures, details | {"jobs": sizes.held_jobs})


async def _run(database: BenchDatabase, sizes: Sizes, held: int) -> Found:
    """Let a worker do so many jobs over the rows, while the application has some of them open."""
    await empty(database)
    async with AsyncExitStack() as stack:
        application = await connect(database.dsn)
        stack.push_async_callback(application.close)
        await stack.enter_async_context(attached(database))
        await fill(database, sizes.held_of)
        async with application.transaction():
            ids = [row["id"] for row in await application.fetch(text("hold_orders"), held)]
            await database.connection.fetchval("SELECT pg_stat_statements_reset() IS NULL")
            worker = await stack.enter_async_context(database.worker())
            begun = time.perf_counter()
            await _work(database, worker, sizes, ids)
            settles = await database.connection.fetchrow(text("settles"))
            assert settles is not None  # noqa: S101  # it is an aggregate
            late = await _late(database)
            if held:
                await asyncio.sleep(begun + sizes.held_seconds - time.perf_counter())
        committed = time.perf_counter()
        await _until_written(database)
        written_after = time.perf_counter() - committed
    return Found(settles["mean"], settles["longest"], late, written_after)


async def _work(database: BenchDatabase, worker: Child, sizes: Sizes, held: list[int]) -> None:
    """Rows whose work has ended are wanted again, until so many jobs were begun."""
    wanted = sizes.held_of
    while wanted < sizes.held_jobs:
        most = min(sizes.held_jobs - wanted, 100)
        again = await database.connection.fetchval(text("want_orders"), held, most)
        wanted += again
        if not again:
            await asyncio.sleep(_PAUSE)
    await worker.ask(f"expect {KIND} {sizes.held_jobs}")
    await database.must_be_empty(worker.name)


async def _late(database: BenchDatabase) -> int:
    count: int = await database.connection.fetchval("SELECT count(*) FROM hybrid_runner.late_rows")
    return count


async def _until_written(database: BenchDatabase) -> None:
    try:
        async with asyncio.timeout(_WRITTEN_WITHIN):
            while await _late(database):  # noqa: ASYNC110  # others write them
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        left = await _late(database)
        raise BenchError(f"{left} rows were late for {_WRITTEN_WITHIN:g} s") from None
