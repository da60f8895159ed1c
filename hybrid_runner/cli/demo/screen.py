"""A terminal for the live view: a second screen, no cursor, no wrapping, keys without Enter; all
put back afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J", "\x1b[?7h\x1b[?25h\x1b[?1049l"


class Screen:
    """Draws whole frames."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        with suppress(OSError):
            columns, lines = os.get_terminal_size(sys.stdout.fileno())
            return (columns or 80), (lines or 24)
        return 80, 24

    def show(self, lines: list[str], size: tuple[int, int]) -> None:
        """Replace what is on the screen, without a flicker."""
        wiped = "" if size == self._last else "\x1b[2J"
        self._last = size
        sys.stdout.write(wiped + "\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines))
        sys.stdout.flush()


@contextmanager
def screen(on_quit: Callable[[], None]) -> Iterator[Screen]:
    """Take the terminal; q calls `on_quit`."""
    with _keys(on_quit):
        sys.stdout.write(_ENTER)
        try:
            yield Screen()
        finally:
            with suppress(OSError):
                sys.stdout.write(_LEAVE)
                sys.stdout.flush()


@contextmanager
def _keys(on_quit: Callable[[], None]) -> Iterator[None]:
    if not sys.stdin.isatty():
        yield
        return
    import termios  # noqa: PLC0415  # not on every system
    import tty  # noqa: PLC0415

    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def on_key() -> None:
        if set(os.read(keyboard, 64)) & set(b"qQ\x1b\x04"):
            on_quit()

    try:
        tty.setcbreak(keyboard)
        loop.add_reader(keyboard, on_key)
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
