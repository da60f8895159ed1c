"""How Python is set up in a process that does nothing but work."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable

YOUNG = 10_000
"""Objects between two looks. The jobs in hand are more than Python's 700 (2,000 from 3.13): nearly
each look is in vain.
"""


def look_for_garbage_less_often() -> None:
    """For a process of our own, before the application is loaded: what it sets itself is what it
    gets.
    """
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:
        gc.set_threshold(YOUNG, *older)


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes an event loop of uvloop, where that is installed; None: Python's own."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415  # an extra

        return uvloop.new_event_loop
    return None
