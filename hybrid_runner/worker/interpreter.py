"""How Python is set up in a process that only runs a worker."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable

YOUNG = 10_000
"""How many new objects start a collection. Python's default of 700 (2,000 from 3.13) is less than
the objects of the jobs that run, so nearly every collection would find nothing.
"""


def collect_garbage_less_often() -> None:
    """Call it before the application is loaded, which may set a threshold of its own."""
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:
        gc.set_threshold(YOUNG, *older)


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A factory for uvloop's event loops if uvloop is installed; None stands for Python's own."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415  # an extra

        return uvloop.new_event_loop
    return None
