"""Postgres refuses to run as root: which user it runs as instead.

The standard library only: the file is also run as a script, to try namespaces in a process of its
own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import assert_never

WITHOUT_NAMESPACES = "HYBRID_RUNNER_WITHOUT_NAMESPACES"
NOBODY = 65534
_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


class Account(Enum):
    """The user that Postgres runs as."""

    SELF = "self"
    """Not root: the current user."""
    NAMESPACE = "namespace"
    """Root: uid 1000 of a user namespace, which is root outside, so files stay root's."""
    NOBODY = "nobody"
    """Root without namespaces (Docker's default seccomp profile): uid 65534, files are chowned."""

    @property
    def owner(self) -> int:
        """The uid that owns the files of a server run by this account."""
        return NOBODY if self is Account.NOBODY else os.geteuid()


def become(account: Account) -> None:
    """Turn this process, a child about to exec, into a user Postgres accepts."""
    match account:
        case Account.SELF:
            return
        case Account.NAMESPACE:
            if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER):
                raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER)")
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text("1000 0 1")
            Path("/proc/self/gid_map").write_text("1000 0 1")
        case Account.NOBODY:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        case _:
            assert_never(account)


def die_with_parent(parent: int, number: signal.Signals) -> None:
    """Get `number` when `parent` dies; after `become`, for a change of user clears it. Linux
    only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)


def accepted_account() -> Account:
    """The account to run Postgres as."""
    if os.geteuid() != 0:
        return Account.SELF
    return Account.NAMESPACE if _namespaces_work() else Account.NOBODY


def allows(account: Account, question: Callable[[], bool]) -> bool:
    """Call `question` in a forked child that runs as that account; only for a process without
    threads.
    """
    child = os.fork()
    if child == 0:
        answer = False
        try:
            become(account)
            answer = question()
        finally:
            os._exit(0 if answer else 1)
    return os.waitpid(child, 0)[1] == 0


def _namespaces_work() -> bool:
    if sys.platform != "linux" or os.environ.get(WITHOUT_NAMESPACES):
        return False
    # A script, not a fork: the caller may have threads.
    command = [sys.executable, "-I", "-S", __file__]
    return (
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        ).returncode
        == 0
    )


if __name__ == "__main__":
    become(Account.NAMESPACE)
