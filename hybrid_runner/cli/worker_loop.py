"""The event loop of a process that is a worker: handlers may raise and cancel in it whatever they
like, only signals end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from hybrid_runner.cli.event_loop import make_loop
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.interpreter import fastest_loop
from hybrid_runner.worker.signals import EndAtOnce, forget_signals_in_forks

log = logging.getLogger("hybrid_runner.worker")


def run_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run it to its end; SystemExit if a second signal came.

    asyncio lets SystemExit and KeyboardInterrupt of a task, and of nothing else, out of the loop:
    whoever awaits that task gets it all the same, so the loop is to go on.
    """
    forget_signals_in_forks()
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        loop = make_loop(runner)
        # A fork of a handler's that goes on in this loop has all of the worker's connections.
        os.register_at_fork(after_in_child=lambda: _end_in_loop(loop))
        main = loop.create_task(work)
        while True:
            try:
                return loop.run_until_complete(main)
            except (SystemExit, KeyboardInterrupt) as end:
                if isinstance(end, EndAtOnce) or main.done() or _is_ctrl_c(end):
                    raise
                log.exception(
                    "a task of a handler raised %s: the worker goes on",
                    type(end).__name__,
                    extra=log_event("worker.exit_ignored"),
                )
            except RuntimeError:
                if main.done():
                    raise
                log.exception(
                    "a handler stopped the event loop: the worker goes on",
                    extra=log_event("worker.exit_ignored"),
                )


class SignalledStop(asyncio.Event):
    """Waits for an event that signals set, whatever handlers cancel."""

    def __init__(self, stop: asyncio.Event) -> None:
        super().__init__()
        self._stop = stop

    async def wait(self) -> Literal[True]:
        task = asyncio.current_task()
        while True:
            try:
                return await self._stop.wait()
            except asyncio.CancelledError:
                while task is not None and task.cancelling():
                    task.uncancel()
                log.error(  # noqa: TRY400  # where it was cancelled says nothing
                    "a handler cancelled the task that waits for signals: the worker goes on",
                    extra=log_event("worker.cancel_ignored"),
                )


def only_by_signals(stop_on_signals: Callable[[], asyncio.Event]) -> Callable[[], asyncio.Event]:
    """The same, but cancelling does not end the wait for what it returns."""
    return lambda: SignalledStop(stop_on_signals())


def _end_in_loop(loop: asyncio.AbstractEventLoop) -> None:
    """End this process as soon as the loop turns, which it never does in a fork that is in order,
    such as those of multiprocessing.
    """
    with contextlib.suppress(RuntimeError):  # it is closed
        loop.call_soon(os._exit, 1)


def _is_ctrl_c(end: BaseException) -> bool:
    """Whether Python itself raised it: no handler of ours was set yet."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(end, KeyboardInterrupt) and is_default
