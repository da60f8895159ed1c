"""The three standard streams, also when the shell has closed them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_OF_WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def prepare_streams() -> None:
    """Open closed streams (`>&-`) on /dev/null; replace characters that the terminal
    cannot show.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        _open_if_closed(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _open_if_closed(number: int) -> None:
    """Otherwise the next file or socket would get this number, and what is printed would
    go there.
    """
    try:
        os.fstat(number)
    except OSError:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, number)  # inheritable also when it is the same number
        os.set_inheritable(number, True)
        if nothing != number:
            os.close(nothing)


def is_of_writing(error: OSError) -> bool:
    """Whether printing failed, for example because a disk is full; an error about a file
    names it.
    """
    return error.filename is None and error.errno in _OF_WRITING


def write_nothing_more() -> None:
    """Discard what is still to be printed; the interpreter would complain about it at its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
