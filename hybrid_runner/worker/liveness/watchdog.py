"""Notices from another thread that the worker's event loop stands still, and logs the line that
holds it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop

log = logging.getLogger("hybrid_runner.worker")

_CHECKS = 4
"""How often the loop is checked in the time after which it counts as stalled."""


@dataclass(frozen=True, slots=True)
class Stall:
    """What holds the event loop."""

    seconds: float
    place: str
    """The innermost line."""
    stack: str


class Watchdog:
    """Made in the worker's thread, whose event loop it watches; `run` belongs in another thread.

    `found` is called with a stall and returns the log fields of the job that causes it. `lagged` is
    called with the seconds that the loop took to answer each check.
    """

    def __init__(
        self,
        limit: float,
        found: Callable[[Stall], dict[str, object]],
        lagged: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._limit = limit
        self._found = found
        self._lagged = lagged
        self._worker_loop = WorkerLoop()
        self._thread = threading.get_ident()
        self._asked_at = self._turned_at = time.monotonic()
        self._lag = 0.0
        self.stalls = 0
        self.stalled = False
        """Whether the loop has stood still for longer than the limit."""

    @property
    def lag(self) -> float:
        """Seconds that the loop took to answer the last check, or has taken for it so far."""
        asked_at = self._asked_at
        return (
            self._lag
            if self._turned_at >= asked_at
            else max(self._lag, time.monotonic() - asked_at)
        )

    async def run(self) -> None:
        """Watch until the loop is closed, which ends the whole thread: see WorkerLoopClosed."""
        while True:
            self._asked_at = began = time.monotonic()
            self._worker_loop.call(self._turn, began)
            await asyncio.sleep(self._limit / _CHECKS)
            now = time.monotonic()
            if now - began > self._limit / 2 and not self.stalled:
                self._turned_at = now  # this thread stood still too: the process was frozen
            silent = now - self._turned_at
            if silent <= self._limit:
                self.stalled = False
            elif not self.stalled:
                self.stalled = True
                self.stalls += 1
                self._report(silent)

    def _turn(self, asked_at: float) -> None:
        self._turned_at = time.monotonic()
        self._lag = self._turned_at - asked_at
        self._lagged(self._lag)

    def _report(self, silent: float) -> None:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001  # documented, its name notwithstanding
        if frame is None:
            return
        stall = Stall(silent, _place(frame), "".join(traceback.format_stack(frame)))
        log.error(
            "the event loop has stood still for %.1f s: it is held by %s\n%s",
            stall.seconds,
            stall.place,
            stall.stack,
            extra=log_event("loop.stalled", **self._found(stall)),
        )


def _place(frame: FrameType) -> str:
    innermost = traceback.extract_stack(frame)[-1]
    return f"{innermost.filename}:{innermost.lineno} in {innermost.name}: {innermost.line}"
