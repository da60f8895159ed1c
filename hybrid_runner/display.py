"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_BAR_WIDTH = 24


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
