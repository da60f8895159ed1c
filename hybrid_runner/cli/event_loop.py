"""Event loops that Ctrl-C cannot leave half made."""

from __future__ import annotations

import asyncio
import signal


def make_loop(runner: asyncio.Runner) -> asyncio.AbstractEventLoop:
    """The runner's loop. Ctrl-C has to wait until it is there: one that is half made complains when
    it is thrown away.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return runner.get_loop()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
