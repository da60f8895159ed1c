"""Single-row INSERTs at a pace, each carrying when it was sent: `python -m
hybrid_runner.bench.producer CONNECTIONS`.

The statement is in BENCH_INSERT; its $1 is the clock's nanoseconds as text. Commands: `pace RATE
SECONDS`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from typing import Any

from hybrid_runner.bench.stopwatch import obey, run_fast, say
from hybrid_runner.storage.connections.connection import connect

INSERT_VARIABLE = "BENCH_INSERT"


async def main() -> None:
    """Open the connections, then insert when asked to."""
    connections = [await connect(os.environ["HYBRID_RUNNER_DSN"]) for _ in range(int(sys.argv[1]))]
    inserts = []
    for connection in connections:
        await connection.execute("SET plan_cache_mode = auto")  # as any client's
        inserts.append(await connection.prepare(os.environ[INSERT_VARIABLE]))

    async def pace(words: list[str]) -> dict[str, Any]:
        rate, seconds = float(words[0]), float(words[1])
        numbers = itertools.count()
        start = time.monotonic()

        async def client(insert: Any) -> None:
            for number in numbers:
                due = start + number / rate
                now = time.monotonic()
                # When it cannot keep up, what was reached is reported.
                if max(due, now) >= start + seconds:
                    return
                if due > now:
                    await asyncio.sleep(due - now)
                await insert.fetchval(str(time.monotonic_ns()))
                sent.append(None)

        sent: list[None] = []
        await asyncio.gather(*(client(insert) for insert in inserts))
        return {"sent": len(sent), "seconds": max(time.monotonic() - start, seconds)}

    say({"ready": True})
    await obey({"pace": pace})
    for connection in connections:
        await connection.close()


if __name__ == "__main__":
    run_fast(main)
