"""When the next round of a host is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

_WHOLE: Final = 1 << 64
SHORTEST: Final = timedelta(milliseconds=50)
"""Should a service never come to an end, whatever the reason, its host is no endless loop."""
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)


def next_round(host: str, now: datetime, next_due: timedelta, tick: timedelta) -> timedelta:
    """How long until then: what comes due within a tick is polled together, and the ticks of two
    hosts are not the same. What has come due while a round went on waits for the next: else each
    round would be followed by one more, of a service or two.
    """
    if next_due >= tick:
        return next_due
    place = tick * (int.from_bytes(blake2b(host.encode(), digest_size=8).digest()) / _WHOLE)
    return max(next_due, (place - (now - _BEGINNING)) % tick, SHORTEST)
