"""The shortest loop that claims, runs and archives: no retries, no leases, no traces. `python -m
hybrid_runner.bench.bare [plain]`.

Commands: `expect KIND N`, `clear`, as worker.py has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import defaultdict

import asyncpg
import orjson

from hybrid_runner.bench.stopwatch import Stopwatch, obey, run_fast, say
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE, commands
from hybrid_runner.storage.connections.connection import Connection, connect

BATCH = 200
POLL = 0.5
AT_BEST = (
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "synchronous_commit = off",
)
"""Settings of the session that claims, unless it is plain: one plan by the index, and no wait for a
flush.
"""


async def _connect_plain(dsn: str) -> Connection:
    return await asyncpg.connect(dsn, server_settings={"search_path": "pg_catalog, pg_temp"})


async def main() -> None:
    """Claim a batch, run a task for each job, archive them, and again; when there are none, wait
    for a ring.
    """
    watches: dict[str, Stopwatch] = defaultdict(Stopwatch)
    plain = sys.argv[1:] == ["plain"]
    claims, settles, listener = [
        await (_connect_plain if plain else connect)(os.environ["HYBRID_RUNNER_DSN"])
        for _ in range(3)
    ]
    for setting in () if plain else AT_BEST:
        await claims.execute(f"SET {setting}")
    ring = asyncio.Event()

    async def handle(kind: str, payload: str) -> None:
        watches[kind].note(orjson.loads(payload) if kind == "stamp" else None)

    async def work() -> None:
        claim, archive = (
            await claims.prepare(text("bare_claim")),
            await settles.prepare(text("bare_archive")),
        )
        while True:
            ring.clear()
            while rows := await claim.fetch(QUEUE, BATCH):
                await asyncio.gather(
                    *(asyncio.create_task(handle(row["kind"], row["payload"])) for row in rows)
                )
                await archive.fetch([row["id"] for row in rows])
            # Nobody rings while a mute lasts that a worker has left behind.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await ring.wait()

    await listener.add_listener(f"hybrid_runner.{QUEUE}", lambda *_: ring.set())
    working = asyncio.create_task(work())
    say({"ready": True})
    await obey(commands(watches, asyncio.Event(), []))
    working.cancel()
    for connection in (claims, settles, listener):
        await connection.close()


if __name__ == "__main__":
    run_fast(main)
