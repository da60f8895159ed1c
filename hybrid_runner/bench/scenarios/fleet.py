"""How many workers look because of one INSERT, when many of them are idle and all hear it."""

from __future__ import annotations

import asyncio
import time

from hybrid_runner.bench.child import BenchError, Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text

_CONNECTIONS_EACH = 5
_SPARE = 20
_PAUSE = 0.5
_SLOTS = 10


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Single inserts, far apart; looks before and after."""
    room = int(await database.connection.fetchval("SHOW max_connections")) - _SPARE
    if room < sizes.fleet_workers * _CONNECTIONS_EACH:
        raise BenchError(
            f"{sizes.fleet_workers} workers need max_connections ="
            f" {sizes.fleet_workers * _CONNECTIONS_EACH + _SPARE}"
        )
    await database.clear()
    tell(0.0, f"{sizes.fleet_workers} workers start")
    async with database.worker(_SLOTS, sizes.fleet_workers) as fleet:
        before = await _rested(fleet)
        for number in range(sizes.fleet_inserts):
            tell(0.3 + 0.7 * number / sizes.fleet_inserts, f"insert {number + 1}")
            await database.connection.execute(text("insert_stamp"), str(time.monotonic_ns()))
            await asyncio.sleep(_PAUSE)
        latencies = (await fleet.ask(f"expect stamp {sizes.fleet_inserts}"))["latencies"]
        looks = (await _rested(fleet) - before) / sizes.fleet_inserts
    p50, p99 = p50_p99(latencies)
    figures = (
        Figure(
            "looks per INSERT", "looks", looks, "idle workers that hear it", sizes.fleet_workers
        ),
        Figure("pickup, p50", "ms", p50),
    )
    return Result(
        figures,
        {
            "workers": sizes.fleet_workers,
            "inserts": sizes.fleet_inserts,
            "p50_ms": p50,
            "p99_ms": p99,
        },
    )


async def _rested(fleet: Child) -> int:
    """The number of looks once it no longer grows."""
    looks = -1
    for _ in range(60):
        if (now := int((await fleet.ask("looks"))["looks"])) == looks:
            break
        looks = now
        await asyncio.sleep(_PAUSE)
    return looks
