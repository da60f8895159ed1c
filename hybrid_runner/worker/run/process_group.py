"""The process group of a handler: it ends with its worker, whatever runs in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1


def lead_group(lifeline: int, worker: int) -> None:
    """Make this process, and all that it will start, a group of its own that ends with the worker.

    `lifeline` is the reading end of a pipe into which the worker never writes. Python code could
    not do this: it does not run while a library holds the interpreter's lock.
    """
    os.setpgid(0, 0)
    if sys.platform == "linux":
        # Once the worker has gone, the kernel kills the group for what it reads in the pipe, and
        # this process for its parent's end.
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # noqa: PLC0415  # not in every build of Python

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != worker:  # it ended before
        os._exit(1)


def end_with(lifeline: int) -> None:
    """Wait for the end of the worker, and end the group: for systems whose kernel does not. For a
    thread.
    """
    select.select([lifeline], [], [])
    os.killpg(0, signal.SIGKILL)


def kill_group(leader: int, *, is_led: bool = True) -> None:
    """Kill a process and what it has started, but what has made itself a session of its own;
    without `is_led` what it has left behind.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    if is_led:  # it may have no group yet
        with contextlib.suppress(ProcessLookupError):
            os.kill(leader, signal.SIGKILL)
