"""The thread of the heartbeat ends when it is stopped, whatever happens in the same moment."""

from __future__ import annotations

import asyncio
import threading

from hybrid_runner.worker.liveness.heartbeat import Heartbeat
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop
from tests.support.waiting import until


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


async def test_the_thread_ends_and_closes_when_the_worker_s_loop_is_closed() -> None:
    """Else a program whose loop ended without a stop would hold its duties for ever."""
    beating, closed = threading.Event(), threading.Event()

    async def a_worker() -> Heartbeat:
        worker_loop = WorkerLoop()

        async def beat() -> float:
            worker_loop.call(beating.set)
            return 0.0

        async def close() -> None:
            closed.set()

        async def go_on_for_ever() -> None:
            await asyncio.Event().wait()

        heartbeat = Heartbeat(60, beat, go_on_for_ever, closing=close)
        heartbeat.start()
        return heartbeat

    heartbeat = await asyncio.to_thread(asyncio.run, a_worker())
    await until(lambda: not heartbeat.alive)
    assert closed.is_set()
