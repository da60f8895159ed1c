"""The thread of the heartbeat, with an event loop of its own: no handler can hold it up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hybrid_runner.errors import NoAnswer, RowLocked
from hybrid_runner.telemetry.tracing.current import suppress_instrumentation
from hybrid_runner.worker.liveness.worker_loop import WorkerLoopClosed
from hybrid_runner.worker.loops import Outage, keep

log = logging.getLogger("hybrid_runner.worker")

_SOONEST = 0.2
"""Seconds between a beat and the next one, however soon it asks for that."""
_APART = 0.5
"""Seconds between two beats that `soon` causes: anybody can send the messages behind them."""
AFTER_WAITING = 1.0
"""Seconds at most until the next try of a beat that waited for an answer or a lock: when the lock
ends, others look for workers that are silent.
"""


class Heartbeat:
    """Calls `beat` every `pause` seconds, and runs `others` beside it until it is stopped.

    `beat` returns after how many seconds it has to be called again, or None for the usual pause.
    `closing` is called when the thread ends: that is also when one of them finds that the worker's
    loop is closed, and raises WorkerLoopClosed.
    """

    def __init__(
        self,
        pause: float,
        beat: Callable[[], Awaitable[float | None]],
        *others: Callable[[], Coroutine[Any, Any, None]],
        closing: Callable[[], Awaitable[None]],
    ) -> None:
        self._pause = pause
        self._closing = closing
        self._beat = beat
        self._others = others
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._soon: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._started = threading.Event()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; returns when it runs."""
        self._thread.start()
        self._started.wait()

    def soon(self) -> None:
        """Beat now instead of after the pause. May be called from any thread."""
        if self._loop is not None and self._soon is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._soon.set)

    async def stop(self) -> None:
        """End the thread; waits up to 5 s for it."""
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
            await asyncio.to_thread(self._thread.join, 5)

    def _run(self) -> None:
        suppress_instrumentation()
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            try:
                runner.run(self._live())
            except* (asyncio.CancelledError, WorkerLoopClosed):
                pass

    async def _live(self) -> None:
        self._loop, self._task, self._soon = (
            asyncio.get_running_loop(),
            asyncio.current_task(),
            asyncio.Event(),
        )
        self._started.set()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(keep("heartbeat", self._keep_beating))
                for other in self._others:
                    group.create_task(keep("a loop beside the heartbeat", other))
        finally:
            await self._closing()

    async def _keep_beating(self) -> None:
        # At most the usual pause: else the lease ends because of the waiting.
        outage = Outage("heartbeat", longest=self._pause)
        while True:
            assert self._soon is not None  # noqa: S101  # set before anything runs
            self._soon.clear()
            began = asyncio.get_running_loop().time()
            again = began + _APART
            try:
                wanted = await self._beat()
            except (NoAnswer, RowLocked) as error:
                pause = outage.failed(error, longest=AFTER_WAITING)
            except Exception as error:
                pause = outage.failed(error)
            else:
                outage.over()
                # Up to a twentieth early or late, so that a fleet does not beat all at once.
                pause = self._pause * (0.95 + 0.1 * random.random())
                # From one beat to the next: what it asks afterwards may have had to wait.
                pause -= asyncio.get_running_loop().time() - began
                if wanted is not None:
                    pause = min(pause, max(_SOONEST, wanted) + 0.3 * random.random())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._soon.wait()
                await asyncio.sleep(again - asyncio.get_running_loop().time())
