"""The three standard streams, whatever the shell made of them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_OF_WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def prepare_streams() -> None:
    """Open what was closed (`>&-`) on nothing, and write no more than the terminal can show."""
    for number, (name, mode) in enumerate(_STREAMS):
        _open_if_closed(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # lasts as long as we do
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _open_if_closed(number: int) -> None:
    """Or the next file or socket gets this number, and what is printed goes there."""
    try:
        os.fstat(number)
    except OSError:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, number)  # inheritable also when it is the same number
        os.set_inheritable(number, True)
        if nothing != number:
            os.close(nothing)


def is_of_writing(error: OSError) -> bool:
    """Whether it says that something printed could not be written; an error of a file would name
    it.
    """
    return error.filename is None and error.errno in _OF_WRITING


def write_nothing_more() -> None:
    """Send to nowhere what is still to be printed, or the interpreter complains at its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
