"""The last line of a terminal, overwritten in place; elsewhere nothing is written."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from hybrid_runner.cli.output import clip, visible_length, without_colours


class StatusLine:
    """Call `clear` before anything else is printed, and at the end."""

    def __init__(self, stream: TextIO) -> None:
        self.is_shown = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream

    def show(self, text: str) -> None:
        """Replace the line; a text that is too wide loses its end, and its colours."""
        width = shutil.get_terminal_size().columns - 1  # in the last column it would wrap
        self._write(text if visible_length(text) <= width else clip(without_colours(text), width))

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self.is_shown:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
