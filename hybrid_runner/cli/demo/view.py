"""Shows the demo while it runs: a line for each event, and on a terminal the counts below them."""

from __future__ import annotations

import shutil
import sys

from hybrid_runner.cli.demo.observations import Observations
from hybrid_runner.cli.output import clip, in_colour, paint
from hybrid_runner.cli.status_line import StatusLine
from hybrid_runner.display import percentile, progress_bar

_MARGIN = 11
"""Columns before an event's text: its time."""


class View:
    """Writes to stdout."""

    def __init__(self, seen: Observations, seconds: float) -> None:
        self._seen = seen
        self._seconds = seconds
        self._coloured = in_colour(sys.stdout)
        self._status = StatusLine(sys.stdout)

    def refresh(self) -> None:
        """Print the new events and renew the counts."""
        if self._seen.events:
            self._status.clear()
        while self._seen.events:
            at, text, colour = self._seen.events.popleft()
            if self._status.is_shown:
                text = clip(text, shutil.get_terminal_size().columns - _MARGIN)
            time = paint(f"{at:5.1f} s", "dim", on=self._coloured)
            print(f"  {time}  {paint(text, colour, on=self._coloured)}", flush=True)
        self._status.show(counts(self._seen, self._seconds, coloured=self._coloured))

    def end(self) -> None:
        """Print the last events; the counts are gone."""
        self.refresh()
        self._status.clear()


def counts(seen: Observations, seconds: float, *, coloured: bool) -> str:
    """How far the demo is, how many jobs are where, and how soon they are picked up."""
    pickups = seen.single()
    parts = (
        (f"{seen.done:,} of {seen.sent:,} done", "green"),
        (f"{seen.live['running']:,} running", "yellow"),
        (f"pickup p50 {percentile(pickups, 0.5):.1f} ms" if pickups else "", ""),
    )
    words = ", ".join(paint(text, colour, on=coloured) for text, colour in parts if text)
    return f"  {paint(progress_bar(seen.elapsed / seconds), 'cyan', on=coloured)}  {words}"
