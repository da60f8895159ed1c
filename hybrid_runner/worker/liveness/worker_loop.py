"""How the heartbeat's thread calls into the worker's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


class WorkerLoopClosed(BaseException):
    """The worker's loop is closed, so the heartbeat's thread has to end. Passes through every
    `except Exception`, and unlike CancelledError it ends a whole TaskGroup.
    """


class WorkerLoop:
    """The event loop in which it is made; `call` is for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call(self, function: Callable[[Unpack[Ts]], object], *arguments: *Ts) -> None:
        """Have it called in the worker's loop; raises WorkerLoopClosed if that loop is closed."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise WorkerLoopClosed from None
