"""Which keys a worker is to look for after it heard of signals: bounded, whatever is sent."""

from __future__ import annotations

from collections.abc import Iterable

MOST_KEYS = 2000
"""Keys that are kept; of more, it is only known that there were more."""
AT_ONCE = 200
"""Keys in one statement."""


class HeardKeys:
    """Keys of signals that nobody has looked for yet."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self.is_sweep_due = False
        """There were more than are kept, or some that were not named."""

    def __bool__(self) -> bool:
        return bool(self._keys) or self.is_sweep_due

    def add(self, keys: Iterable[str]) -> None:
        """Look for these, too; an empty one stands for many."""
        for key in keys:
            if key and (key in self._keys or len(self._keys) < MOST_KEYS):
                self._keys[key] = None
            else:
                self.is_sweep_due = True

    def take(self) -> list[str]:
        """Those to look for now, the oldest first."""
        taken = list(self._keys)[:AT_ONCE]
        for key in taken:
            del self._keys[key]
        return taken
