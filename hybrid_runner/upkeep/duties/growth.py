"""Warns of what lets tables grow, and the queue of notifications: vacuum or prune() that is held
back, vacuum that is switched off, an archive without partitions.
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
"""How long vacuum may be held back before that is logged."""
_REPEAT_AFTER = 3600.0
"""Seconds after which a cause that is still there is logged again."""
_VALID = 1500.0
"""Seconds for which a finding is shown: the next check may be made by another worker."""
_HOLDS_BACK = ("session", "prepared", "slot", "standby", "setting", "option", "prune")
"""First words of the causes that keep something from being cleaned up, by vacuum or prune(); the
others concern the partitions of the archive, and the queue of notifications.
"""


class GrowthWatch(Duty):
    """Logs one line for each cause, and the same cause only once an hour."""

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
        """Descriptions of what keeps vacuum, or prune(), from cleaning up. May be called from any
        thread.
        """
        descriptions, found_at = self._pinned
        return descriptions if self._clock() - found_at < _VALID else ()

    async def run(self, connection: Fetches) -> None:
        """Check once, and log what was found."""
        found = await worker_calls.find_growth(connection, self._longer_than)
        now = self._clock()
        holding = (description for cause, description in found if cause.startswith(_HOLDS_BACK))
        self._pinned = tuple(holding), now
        self._reported = {
            cause: at for cause, at in self._reported.items() if now - at < _REPEAT_AFTER
        }
        for cause, description in found:
            if cause not in self._reported:
                self._reported[cause] = now
                log.warning("growth: %s", description, extra=log_event("tables.grow"))
