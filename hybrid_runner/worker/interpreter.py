"""How Python is set up in a process that only runs a worker."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable

if sys.platform != "win32":
    import resource

YOUNG = 10_000
"""How many new objects start a collection. Python's default of 700 (2,000 from 3.13) is less than
the objects of the jobs that run, so nearly every collection would find nothing.
"""

ENOUGH_FILES = 16_384
"""Open files that a worker asks for: most systems give 1,024, and more to whoever asks."""


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


def allow_more_files() -> None:
    """Let this process open as many files as it may, up to ENOUGH_FILES: connections of handlers,
    of the database and of clients of the pages are files.
    """
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(ENOUGH_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            with contextlib.suppress(OSError, ValueError):  # some systems promise too much
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_files() -> int:
    """How many files this process may open."""
    if sys.platform == "win32":
        return ENOUGH_FILES
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
