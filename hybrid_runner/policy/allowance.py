"""How often something may be done that strangers can ask for. Time is an argument."""

from __future__ import annotations


class Allowance:
    """So many at once, and from then on so many a second."""

    def __init__(self, at_once: float, per_second: float) -> None:
        self._most = at_once
        self._per_second = per_second
        self._left = at_once
        self._at: float | None = None

    def take(self, now: float, count: float = 1) -> bool:
        """Use up so many if they are left."""
        if self.wait(now, count) > 0:
            return False
        self._left -= count
        return True

    def wait(self, now: float, count: float = 1) -> float:
        """Seconds until so many are left; 0: they are."""
        if self._at is not None:
            self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (count - self._left) / self._per_second)
