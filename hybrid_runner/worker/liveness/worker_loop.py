"""The way from the heartbeat's thread back into the worker's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


class WorkerLoop:
    """Made in the worker's event loop; `call` is for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call(self, function: Callable[[Unpack[Ts]], object], *arguments: *Ts) -> None:
        """Have it called there soon. CancelledError when that loop was closed: nobody is left to
        work for.
        """
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise asyncio.CancelledError from None
