"""The app of the tests whose handlers behave towards their worker as libraries do that were made
for programs of their own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Coroutine
from typing import Any

from hybrid_runner import Job, Runner

app = Runner()
kept: list[asyncio.Task[Any]] = []
let_go = asyncio.Event()


async def tool(what: str) -> None:
    """As argparse, click and many a main() do."""
    await asyncio.sleep(0)
    if what == "KeyboardInterrupt":
        raise KeyboardInterrupt
    sys.exit(3)


@app.job("exit_in_group", max_attempts=1)
async def exit_in_group(payload: str) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.Event().wait())
        group.create_task(tool(payload))


@app.job("exit_in_gather", max_attempts=1)
async def exit_in_gather(payload: str) -> None:
    await asyncio.gather(tool(payload), asyncio.Event().wait())


@app.job("exit_in_wait_for", max_attempts=1)
async def exit_in_wait_for(payload: str) -> None:
    await asyncio.wait_for(tool(payload), 60)


@app.job("exit_in_thread_of_loop", max_attempts=1)
async def exit_in_thread_of_loop(payload: str) -> None:
    def run() -> None:
        coroutine: Coroutine[Any, Any, None] = tool(payload)
        while True:
            coroutine.send(None)

    await asyncio.to_thread(run)


@app.job("exit_unawaited", max_attempts=1)
async def exit_unawaited(payload: str) -> str:
    kept.append(asyncio.create_task(tool(payload)))
    await asyncio.wait(kept)
    return "went on"


@app.job("exit_in_callback", max_attempts=1)
async def exit_in_callback(payload: str) -> str:
    called = asyncio.Event()

    def leave() -> None:
        called.set()
        if payload == "KeyboardInterrupt":
            raise KeyboardInterrupt
        sys.exit(3)

    asyncio.get_running_loop().call_soon(leave)
    await called.wait()
    return "went on"


@app.job("stop_the_loop", max_attempts=1)
async def stop_the_loop(_: str) -> str:
    """As libraries do that were given a loop to themselves."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "went on"


def double(number: int) -> int:
    return 2 * number


@app.job("fork_from_a_thread", max_attempts=1)
def fork_from_a_thread(_: Any) -> str:
    """The end of this block calls `terminate` of its processes, which is SIGTERM."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    return "went on"


@app.job("fork_and_return", max_attempts=1)
async def fork_and_return(_: Any) -> str:
    """Return twice, to the same loop."""
    fork = os.fork()
    if fork == 0:
        await asyncio.sleep(600)
    return str(fork)


@app.job("cancel_all", max_attempts=1)
async def cancel_all(_: Any) -> str:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
    return "went on"


@app.job("innocent", max_attempts=1)
async def innocent(_: Any, job: Job) -> str:
    await job.progress(0.1, "began")
    await let_go.wait()
    return "ok"


@app.job("let_go")
async def let_innocents_go(_: Any) -> None:
    let_go.set()


@app.job("quick")
async def quick(_: Any) -> str:
    return "ok"
