"""Worker processes without a leader, and their deaths."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.cli.running import COMMAND, ROOT, environment

PIDS = "SELECT array_agg(pid) FROM hybrid_runner.workers WHERE dead_at IS NULL"


@asynccontextmanager
async def fleet(dsn: str, size: int, **settings: str) -> AsyncIterator[None]:
    """So many worker processes; one that is killed is started again by their parent."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("worker", "tests.behaviour.schedules.app:app", "--queue", "default=20"),
        *("--processes", str(size)),
        cwd=ROOT,
        env=environment(HYBRID_RUNNER_DSN=dsn, HYBRID_RUNNER_LOG_LEVEL="warning", **settings),
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def kill_some(pids: Callable[[], Awaitable[list[int] | None]], every: float) -> None:
    """End a random worker process, again and again, until cancelled."""
    while True:
        await asyncio.sleep(every)
        alive = await pids()
        if alive:
            try:
                os.kill(random.choice(alive), signal.SIGKILL)
            except ProcessLookupError:
                continue
