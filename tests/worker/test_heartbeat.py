"""The thread of the heartbeat ends when it is stopped, whatever happens in the same moment."""

from __future__ import annotations

import asyncio
import threading

from hybrid_runner.worker.liveness.heartbeat import Heartbeat


async def test_a_stop_that_meets_a_wake_up_ends_the_thread_at_once() -> None:
    """On Python 3.11 `asyncio.wait_for` returned, and the cancellation was lost."""
    loops: list[asyncio.AbstractEventLoop] = []
    waiting, held, go_on, closed = (threading.Event() for _ in range(4))

    async def beat() -> None:
        loops.append(asyncio.get_running_loop())
        loops[0].call_soon(loops[0].call_soon, waiting.set)  # when the task waits for its next beat

    async def close() -> None:
        closed.set()

    def hold() -> None:
        held.set()
        go_on.wait()

    heartbeat = Heartbeat(60, beat, closing=close)
    heartbeat.start()
    waiting.wait()
    loops[0].call_soon_threadsafe(hold)
    held.wait()
    heartbeat.soon()
    stop = asyncio.create_task(heartbeat.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stop
    assert closed.is_set()
    assert not heartbeat.alive
