"""Whether a folder, or what is in it, could have been prepared by another user.

Whoever prepares the data directory of somebody's Postgres runs programs as that user: an
`archive_command` is enough. `sudo` often keeps the variables that say where the folder is.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hybrid_runner.embedded.account import NOBODY

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_ALL_USERS = "4294967295"


def distrust_of(directory: Path) -> str | None:
    """Why this absolute path, which need not exist, may be in the hands of another user; None: it
    is not. For root every folder on the way counts, since root would change owners on it.
    """
    root = os.geteuid() == 0
    for path in (directory, *directory.parents) if root else (directory,):
        if not os.path.lexists(path):
            continue
        found = path.lstat()
        if found.st_uid not in _trusted_owners():
            return f"{path} belongs to uid {found.st_uid}"
        shared = path != directory and found.st_mode & stat.S_ISVTX
        if root and found.st_mode & _WRITABLE and not shared:
            return f"others may write to {path}"
    return None


def distrust_of_data(data: Path) -> str | None:
    """The same about the data directory in a folder that is trusted."""
    if not os.path.lexists(data):
        return None
    found = data.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"{data} is no folder"
    ours = (0, NOBODY) if os.geteuid() == 0 else (os.geteuid(),)
    return None if found.st_uid in ours else f"{data} belongs to uid {found.st_uid}"


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a file that this user has made, or makes now; OSError for a link and for
    anybody else's file.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise OSError(errno.EPERM, "not a file of this user's own", str(path))
    return descriptor


def _trusted_owners() -> set[int]:
    owners = {0, os.geteuid()}
    try:
        mapped = Path("/proc/self/uid_map").read_text().split()
    except OSError:
        return owners
    # In a user namespace the folders of the real root look as if they were nobody's.
    return owners if mapped[2:] == [_ALL_USERS] else owners | {NOBODY}
