"""Everything that is printed: aligned tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from hybrid_runner.display import harmless, moment_text

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
STATE_COLOURS = {
    "queued": "blue",
    "running": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def in_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal that may be coloured."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, *, on: bool = True) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if on and text and colour in _CODES else text


def clip(text: str, width: int) -> str:
    """At most `width` characters; an ellipsis says that there was more."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def print_json(value: Any) -> None:
    """One JSON document on one line."""
    print(json.dumps(value, default=_jsonable), flush=True)


def as_text(value: Any) -> str:
    """A job's payload or result, readable on one line."""
    return harmless(json.dumps(value, ensure_ascii=False, default=_jsonable))


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str]
) -> None:
    """Print aligned columns; the last one takes what is left of a terminal's width. Each row has a
    colour, for its second column.
    """
    coloured = in_colour(sys.stdout)
    widths = [max(len(row[at]) for row in [headers, *rows]) for at in range(len(headers) - 1)]
    left = (
        shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)
        if sys.stdout.isatty()
        else 10_000
    )

    def aligned(row: Sequence[str]) -> str:
        first, last = row[0].rjust(widths[0]), clip(row[-1], max(8, left))
        return align([first, *row[1:-1], last], [*widths, 0])

    print(paint(aligned(headers), "dim", on=coloured))
    for row, colour in zip(rows, colours, strict=True):
        line = aligned(row)
        if coloured:
            start = widths[0] + 2
            line = (
                line[:start]
                + paint(line[start : start + widths[1]], colour)
                + line[start + widths[1] :]
            )
        print(line)


def align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One line of a table."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def without_colours(text: str) -> str:
    """The text as it was before `paint`."""
    return _ESCAPES.sub("", text)


def visible_length(text: str) -> int:
    """Characters on the screen."""
    return len(without_colours(text))


def ago(moment: datetime | None) -> str:
    """Such as "5 s ago" or "in 2 min"."""
    if moment is None:
        return ""
    if (text := moment_text(moment)) == "never":
        return text
    distance = datetime.now(UTC) - moment
    return f"{span(distance)} ago" if distance >= timedelta(0) else f"in {span(-distance)}"


def counted(number: int, what: str, many: str | None = None) -> str:
    """Such as "1 job" or "2 jobs"."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def span(length: timedelta) -> str:
    """Such as "120 ms", "90 s" or "5 min"."""
    seconds = length.total_seconds()
    for limit, size, unit in (
        (1, 0.001, "ms"),
        (120, 1, "s"),
        (7200, 60, "min"),
        (172_800, 3600, "h"),
    ):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        # `asdict` would copy deeply.
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)
