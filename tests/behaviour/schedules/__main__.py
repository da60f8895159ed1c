"""Measures it: `python -m tests.behaviour.schedules [--workers 16] [--schedules 200] [--seconds 10]
[--kill SECONDS] [--crash SECONDS]`.

On a Postgres of its own in a folder, that flushes what it commits. With --kill a random worker
process is killed every so often, and another one starts in its place; with --crash the server is.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from tests.behaviour.chaos.postgres import WORKER, Postgres
from tests.behaviour.schedules.course import begin, judge, left
from tests.behaviour.schedules.fleet import PIDS, fleet, kill_some

_PATIENCE = 120.0


async def crash(postgres: Postgres, every: float) -> None:
    """Have the server crash, again and again."""
    while True:
        await asyncio.sleep(every)
        await postgres.end(signal.SIGQUIT)
        print("the server crashed and is back", flush=True)


async def until(postgres: Postgres, query: str, least: int) -> None:
    """Wait for a count."""
    async with asyncio.timeout(_PATIENCE):
        while (await postgres.fetch(query))[0][0] < least:
            await asyncio.sleep(0.2)


async def measure(asked: argparse.Namespace) -> bool:
    """Whether each tick has made one job; prints how late."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(Postgres.running(Path(folder) / "postgres"))
            await postgres.fetch(f"ALTER SYSTEM SET max_connections = {20 + 8 * asked.workers}")
            await postgres.end(signal.SIGINT)
            lease = {"HYBRID_RUNNER_LEASE": f"{asked.lease}s"}
            await stack.enter_async_context(fleet(postgres.dsn(WORKER), asked.workers, **lease))
            await until(postgres, "SELECT count(*) FROM hybrid_runner.workers", asked.workers)
            await asyncio.sleep(asked.rest)
            async with postgres.connected() as connection:
                await begin(connection, asked.schedules, asked.seconds)

            async def pids() -> list[int] | None:
                found: list[int] | None = (await postgres.fetch(PIDS))[0][0]
                return found

            faults = [
                asyncio.create_task(fault)
                for fault in (
                    *([kill_some(pids, asked.kill)] if asked.kill else []),
                    *([crash(postgres, asked.crash)] if asked.crash else []),
                )
            ]
            await asyncio.sleep(asked.seconds + 2)
            for each in faults:
                each.cancel()
            await asyncio.gather(*faults, return_exceptions=True)
            began = time.monotonic()
            while await postgres.insist(left) and time.monotonic() - began < _PATIENCE:
                await asyncio.sleep(0.2)
            judgement = await postgres.insist(judge)
            print(judgement)
            return judgement.once


def main() -> int:
    """0 if each tick has made one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--lease", type=float, default=30)
    parser.add_argument("--kill", type=float, default=0)
    parser.add_argument("--crash", type=float, default=0)
    parser.add_argument("--rest", type=float, default=5, help="seconds before the first tick")
    return 0 if asyncio.run(measure(parser.parse_args())) else 1


if __name__ == "__main__":
    sys.exit(main())
