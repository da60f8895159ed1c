"""Since when Postgres has not answered: written by connections, read by the health page."""

from __future__ import annotations

import time


class Reachability:
    """Whether Postgres answers. Any thread may write: each write is one assignment."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.complaint = ""
        """Written by `failed`: the error of the last statement that got no answer."""

    def answered(self) -> None:
        """Postgres answered a statement, perhaps by a refusal: any answer ends an outage."""
        self._since = None

    def failed(self, error: Exception) -> None:
        """Postgres could not be reached, or did not answer in time."""
        self.complaint = str(error)
        if self._since is None:
            self._since = time.monotonic()

    @property
    def away(self) -> float | None:
        """For how many seconds Postgres has not answered; None: it answered the last statement."""
        since = self._since
        return None if since is None else time.monotonic() - since
