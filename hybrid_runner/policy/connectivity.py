"""Whether a process that polls many hosts has a network at all."""

from __future__ import annotations

from typing import Final

HOSTS: Final = 3
"""So many hosts in a row that failed for a reason on this side."""
_MEMORY: Final = 60.0
"""Seconds."""


class Connectivity:
    """Where nothing was reached since, failures of this side at several hosts say nothing of them.

    Times are those of any clock that does not go back.
    """

    def __init__(self) -> None:
        self._failed: dict[str, float] = {}

    def note(self, host: str, *, is_local: bool, at: float) -> None:
        """What a poll came to. Any answer, even that of an error, proves a network."""
        if not is_local:
            self._failed.clear()
            return
        self._failed.pop(host, None)
        self._failed[host] = at
        while len(self._failed) > HOSTS:  # the oldest of them
            del self._failed[next(iter(self._failed))]

    def is_cut_off(self, at: float) -> bool:
        """Whether polls that failed on this side are to be taken for missed."""
        return sum(at - failed <= _MEMORY for failed in self._failed.values()) >= HOSTS
