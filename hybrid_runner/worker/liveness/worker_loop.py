"""How the heartbeat's thread calls into the worker's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


class WorkerLoop:
    """The event loop in which it is made; `call` is for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call(self, function: Callable[[Unpack[Ts]], object], *arguments: *Ts) -> None:
        """Have it called in the worker's loop. If that loop is closed, the caller's task ends with
        CancelledError.
        """
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise asyncio.CancelledError from None
