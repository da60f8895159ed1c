"""How many streams may be read at a time, whatever they are about."""

from __future__ import annotations

import math


class Room:
    """Count the streams of a page server that are being read."""

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._taken = 0

    def admits(self, *, granted: bool) -> bool:
        """Return whether another stream may be read; a request with the token is never refused."""
        return granted or self._taken < self._most

    def take(self) -> None:
        self._taken += 1

    def leave(self) -> None:
        self._taken -= 1
