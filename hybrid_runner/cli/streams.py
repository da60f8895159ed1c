"""The three standard streams, whatever the shell made of them."""

from __future__ import annotations

import contextlib
import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


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


def stdout_fails() -> bool:
    """Whether what was printed cannot be written; then nothing more will be, or the interpreter complains at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        write_nothing_more()
        return True
    return False


def write_nothing_more() -> None:
    """Send to nowhere what is still to be printed."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
