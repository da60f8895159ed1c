"""From INSERT to handler, when nothing else happens; beside the least that any listener needs: a
ring and one claim.
"""

from __future__ import annotations

import asyncio
import itertools
import time

from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text

PAUSE = 0.02
_WARM_UP = 5


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Measure in turns: two listeners at once would disturb each other."""
    latencies: dict[str, list[int]] = {"floor": [], "worker": []}
    turns = list(
        itertools.product(
            range(sizes.rounds), (("floor", database.bare), ("worker", database.worker))
        )
    )
    for number, (turn, (name, started)) in enumerate(turns):
        tell(number / len(turns), f"round {turn + 1}: {name}")
        await database.clear()
        async with started() as child:
            latencies[name] += await pickups(database, child, sizes.pickups // sizes.rounds)
    (floor50, floor99), (ours50, ours99) = p50_p99(latencies["floor"]), p50_p99(latencies["worker"])
    figures = (
        Figure("p50", "ms", ours50, "LISTEN and one claim", floor50),
        Figure("p99", "ms", ours99, "LISTEN and one claim", floor99),
    )
    return Result(figures, {"pickups": sizes.pickups, "microseconds": latencies})


async def pickups(
    database: BenchDatabase,
    child: Child,
    count: int,
    *,
    insert: str = "insert_stamp",
    pause: float = PAUSE,
) -> list[int]:
    """Microseconds from before each INSERT to its handler; the first few are not counted."""
    for number in range(_WARM_UP + count):
        await asyncio.sleep(pause)
        await database.connection.execute(text(insert), str(time.monotonic_ns()))
        if number + 1 == _WARM_UP:
            await child.ask(f"expect stamp {_WARM_UP}")
            child.tell("clear")
    latencies: list[int] = (await child.ask(f"expect stamp {count}"))["latencies"]
    return latencies
