"""Which of many sleeping workers a ring is for: all hear it, a few should look. All compute the
same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b

EVERYBODY = 3
"""In a fleet of at most so many workers, all look."""

AT_ONCE = 2
"""So many workers look at once; one more looks a moment later, in case they have died."""


class Part(Enum):
    """What a worker does for a ring."""

    LOOK = "look"
    LOOK_LATER = "look later"
    NOTHING = "nothing"


def place(ringer: int, worker_id: str, members: Iterable[str]) -> int:
    """The place of a worker in the order for a ring of this session, whether or not it is among the
    members yet.
    """
    mine = _rank(ringer, worker_id)
    return sum(_rank(ringer, other) < mine for other in members if other != worker_id)


def part(position: int, members: int) -> Part:
    """What the worker at this place in a fleet of so many does for a ring."""
    if members <= EVERYBODY or position < AT_ONCE:
        return Part.LOOK
    return Part.LOOK_LATER if position == AT_ONCE else Part.NOTHING


def _rank(ringer: int, worker_id: str) -> tuple[bytes, str]:
    # Not a checksum: another ringer would change the ranks of all workers alike, so that some were
    # hardly ever first.
    return blake2b(f"{ringer}:{worker_id}".encode(), digest_size=8).digest(), worker_id
