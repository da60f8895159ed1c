"""How many streams may be read at a time, whatever they are about."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

DISPLACED = "as many read here as may, and somebody with the token came"


class Seat(ABC):
    """Somebody who reads a stream."""

    granted: bool
    """Whether they brought the token."""

    @abstractmethod
    def end(self, reason: str | None) -> None:
        """Send nothing more but the reason."""


class Room:
    """The seats of a page server."""

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._taken: dict[Seat, None] = {}
        """Those who read, and those that have ended while their requests are still open; the oldest
        first.
        """

    def make(self, *, granted: bool) -> bool:
        """Whether there is a seat for another one; one that brings the token takes that of one
        that does not.
        """
        if len(self._taken) < self._most:
            return True
        other = next((each for each in self._taken if not each.granted), None)
        if not granted or other is None:
            return False
        other.end(DISPLACED)
        del self._taken[other]
        return True

    def take(self, seat: Seat) -> None:
        self._taken[seat] = None

    def leave(self, seat: Seat) -> None:
        """Nothing, if it was taken by somebody else already."""
        self._taken.pop(seat, None)
