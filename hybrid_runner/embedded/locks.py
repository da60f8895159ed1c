"""File locks the kernel frees when their holder dies, however it dies."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PAUSE = 0.01
"""Seconds between two looks at something that has no signal of its own."""


def open_lock(path: Path) -> int:
    """A descriptor to lock; children started with exec do not inherit it."""
    return open_own(path, os.O_RDWR)


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a file that this user has made, or makes now; OSError for a link and
    for a file of another user.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise OSError(errno.EPERM, "not a file of this user's own", str(path))
    return descriptor


def hold(path: Path, *, deadline: float, shared: bool = False) -> int | None:
    """The descriptor that holds the lock, or None when others kept it until `deadline`
    (monotonic).
    """
    descriptor = open_lock(path)
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(PAUSE)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor


def wait_until_unshared(descriptor: int) -> None:
    """Block until nobody else holds this lock, then hold it exclusively."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def release(descriptor: int) -> None:
    """Give a lock up, also for forked children that still have the descriptor open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock right now."""
    descriptor = hold(path, deadline=0)
    if descriptor is None:
        return True
    release(descriptor)
    return False
