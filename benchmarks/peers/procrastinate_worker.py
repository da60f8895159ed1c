"""procrastinate, whose handlers note when they were called: `install`, or `work CONCURRENCY`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict
from typing import Any

from procrastinate import App, PsycopgConnector
from stopwatch import Stopwatch, obey, run_fast, say  # ours: the parent puts its folder on the path

DSN = os.environ["HYBRID_RUNNER_DSN"]


async def install() -> None:
    """Its tables and functions."""
    app = App(connector=PsycopgConnector(conninfo=DSN))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    say({"installed": True})


async def work() -> None:
    """A pool of connections, as it makes it by default."""
    watches: dict[str, Stopwatch] = defaultdict(Stopwatch)
    app = App(connector=PsycopgConnector(conninfo=DSN))
    noop_watch, stamp_watch = watches["noop"], watches["stamp"]

    @app.task(name="noop", queue="bench")
    async def noop() -> None:
        noop_watch.note()

    @app.task(name="stamp", queue="bench")
    async def stamp(sent: str) -> None:
        stamp_watch.note(int(sent))

    async def expect(words: list[str]) -> dict[str, Any]:
        return await watches[words[0]].expect(int(words[1]), float(words[2]))

    async def clear(_: list[str]) -> None:
        for watch in watches.values():
            watch.clear()

    async with app.open_async():
        working = asyncio.create_task(
            app.run_worker_async(
                queues=["bench"], concurrency=int(sys.argv[2]), install_signal_handlers=False
            )
        )
        say({"ready": True})
        await obey({"expect": expect, "clear": clear})
        working.cancel()
        await asyncio.wait([working], timeout=5)


if __name__ == "__main__":
    run_fast(install if sys.argv[1] == "install" else work)
