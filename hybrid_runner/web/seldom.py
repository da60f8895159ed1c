"""Log lines that anybody could cause, again and again."""

from __future__ import annotations

import math
import time

_PAUSE = 60.0


class Seldom:
    """Says once a minute that it is time."""

    def __init__(self) -> None:
        self._last = -math.inf

    def is_due(self) -> bool:
        """Whether a minute has passed since this was last true."""
        now = time.monotonic()
        if now - self._last < _PAUSE:
            return False
        self._last = now
        return True
