"""Numbers, times and foreign text as people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

_BAR_WIDTH = 24
_LAST = datetime.max.replace(tzinfo=UTC)
# Characters that could move a terminal's cursor, end a line or turn the order of a text round.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def harmless(text: str) -> str:
    """The text without what could deceive whoever reads it on a terminal: anybody may have
    enqueued the job that it is from. Line feeds and tabs stay.
    """
    return _HARMFUL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The text on one line, and harmless."""
    return harmless(" ".join(text.split()))


def moment_text(moment: datetime, *, local: bool = False) -> str:
    """A time in ISO form; `never` for what Postgres calls infinity, for which Python has the last
    of all times.
    """
    if moment.replace(tzinfo=UTC) == _LAST:
        return "never"
    if local:
        return moment.astimezone().isoformat(sep=" ", timespec="milliseconds")
    return moment.isoformat()


def bytes_text(count: int) -> str:
    """Bytes in a unit that a person can read."""
    for limit, unit in ((2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} bytes"


def progress_bar(share: float) -> str:
    """A bar of which this share is full, from 0 to 1."""
    full = round(min(1.0, max(0.0, share)) * _BAR_WIDTH)
    return "█" * full + "░" * (_BAR_WIDTH - full)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
