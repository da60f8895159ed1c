"""Since when Postgres has not answered, whoever asked: kept by the links, read by the health
page.
"""

from __future__ import annotations

import time


class Reachability:
    """One answer to anybody ends an outage. From any thread: each write is one assignment."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.complaint = ""
        """What the last one that got no answer was told."""

    def answered(self) -> None:
        """Postgres said something to a statement, a refusal perhaps; that it cannot do anything now
        is none.
        """
        self._since = None

    def failed(self, error: Exception) -> None:
        """It could not be reached, or said nothing in time."""
        self.complaint = str(error)
        if self._since is None:
            self._since = time.monotonic()

    @property
    def away(self) -> float | None:
        """For how many seconds nobody got an answer; None: the last one who asked got one."""
        since = self._since
        return None if since is None else time.monotonic() - since
