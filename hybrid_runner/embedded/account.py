"""The user that Postgres runs as, since it refuses root, and the signal that ends it with its
parent.

The standard library only, and for a child process that is about to exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


def leave_root() -> None:
    """Turn a process of root's into uid 1000 of a user namespace, which is root outside, so that
    its files stay root's. A process of another user stays as it is.
    """
    if os.geteuid() != 0:
        return
    try:
        if sys.platform != "linux" or ctypes.CDLL(None).unshare(_CLONE_NEWUSER):
            raise PermissionError
        for name, text in (("setgroups", "deny"), ("uid_map", "1000 0 1"), ("gid_map", "1000 0 1")):
            Path("/proc/self", name).write_text(text)
    except OSError:
        raise PermissionError(
            "Postgres cannot run as root where user namespaces are refused: run as another user,"
            " or set HYBRID_RUNNER_DSN"
        ) from None


def die_with_parent(parent: int, number: signal.Signals) -> None:
    """Get `number` when `parent` dies; after `leave_root`, for a change of user clears it. Linux
    only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)
