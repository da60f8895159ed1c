"""pgqueuer, whose handlers note when they were called: `install`, or `work BATCH_SIZE`; `install`
prints its enqueue statement.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from stopwatch import Stopwatch, obey, run_fast, say  # ours: the parent puts its folder on the path

DSN = os.environ["HYBRID_RUNNER_DSN"]


async def install() -> None:
    """Its tables, with the autovacuum settings that its guide asks for."""
    connection = await asyncpg.connect(DSN)
    driver = AsyncpgDriver(connection)
    await Queries(driver).install()
    await driver.execute(QueryBuilderEnvironment().build_optimize_autovacuum_query())
    await connection.close()
    say({"enqueue": QueryQueueBuilder().build_enqueue_query("raise")})


async def work() -> None:
    """One direct connection, as its guide says."""
    watches: dict[str, Stopwatch] = defaultdict(Stopwatch)
    connection = await asyncpg.connect(DSN)
    app = PgQueuer(AsyncpgDriver(connection))
    noop_watch, stamp_watch = watches["noop"], watches["stamp"]

    @app.entrypoint("noop")
    async def noop(_: Job) -> None:
        noop_watch.note()

    @app.entrypoint("stamp")
    async def stamp(job: Job) -> None:
        stamp_watch.note(json.loads(job.payload or b"0"))

    async def expect(words: list[str]) -> dict[str, Any]:
        return await watches[words[0]].expect(int(words[1]), float(words[2]))

    async def clear(_: list[str]) -> None:
        for watch in watches.values():
            watch.clear()

    working = asyncio.create_task(app.run(batch_size=int(sys.argv[2])))
    say({"ready": True})
    await obey({"expect": expect, "clear": clear})
    app.shutdown.set()
    await asyncio.wait([working], timeout=5)


if __name__ == "__main__":
    run_fast(install if sys.argv[1] == "install" else work)
