"""Warns of what lets the tables grow: vacuum that is held back or off, and an archive without
partitions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

LONGER_THAN = timedelta(minutes=10)
"""How long vacuum may be held back until somebody is told."""
_REPEATED = 3600.0
_KNOWN = 1500.0
"""Seconds for which what was found is believed: whoever looks next may be another worker."""
_HOLDS_BACK = ("session", "prepared", "slot", "standby", "setting", "option")
"""The first words of those who keep vacuum from cleaning up; the others have to do with the
archive.
"""


class GrowthWatch(Duty):
    """Logs one line for each cause, and none for the same one again within the hour."""

    name = "growth"
    every = timedelta(minutes=10)

    def __init__(
        self, longer_than: timedelta = LONGER_THAN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._longer_than = longer_than
        self._clock = clock
        self._reported: dict[str, float] = {}
        self._pinned: tuple[tuple[str, ...], float] = ((), 0.0)

    @property
    def pinned(self) -> tuple[str, ...]:
        """Complaints about those who keep vacuum from cleaning up; from any thread."""
        complaints, found_at = self._pinned
        return complaints if self._clock() - found_at < _KNOWN else ()

    async def run(self, connection: Fetches) -> None:
        """Look once, and warn."""
        found = await worker_calls.find_growth(connection, self._longer_than)
        now = self._clock()
        holding = (complaint for cause, complaint in found if cause.startswith(_HOLDS_BACK))
        self._pinned = tuple(holding), now
        self._reported = {cause: at for cause, at in self._reported.items() if now - at < _REPEATED}
        for cause, complaint in found:
            if cause not in self._reported:
                self._reported[cause] = now
                log.warning("growth: %s", complaint, extra=log_event("tables.grow"))
