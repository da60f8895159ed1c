"""Removes ended jobs that need not be kept longer, by whole partitions of the archive."""

from __future__ import annotations

import logging
from datetime import timedelta

from hybrid_runner.display import bytes_text
from hybrid_runner.model.upkeep import Pruned
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

_PARTITIONS = 20
_CALLS = 50
"""Limits of a run: partitions in one call, each in a transaction of its own, and calls."""


class Prune(Duty):
    """Any number of workers may try this at once: one does it, the others find it busy."""

    name = "prune"
    every = timedelta(minutes=10)
    # A large partition of which a part is kept is rewritten, which takes time.
    patience = timedelta(minutes=30)

    def __init__(self) -> None:
        self._was_blocked = False

    async def run(self, connection: Fetches) -> list[Pruned]:
        """Remove partitions until none is left to remove, or until another session blocks it."""
        done: list[Pruned] = []
        for _ in range(_CALLS):
            pruned = await worker_calls.prune(connection, _PARTITIONS)
            done += pruned
            if not pruned or any(one.prevented for one in pruned):
                break
        for one in done:
            if not one.prevented:
                log.info(
                    "archive: %s %s (%s)",
                    one.what,
                    one.partition,
                    bytes_text(one.bytes),
                    extra=log_event("archive.pruned"),
                )
        self._report_blocked([one.partition for one in done if one.what == "blocked"])
        return done

    def _report_blocked(self, partitions: list[str]) -> None:
        # Once, not at each turn: a slow reader is no news.
        if partitions and not self._was_blocked:
            log.warning(
                "archive: %s cannot be pruned while a transaction holds it; trying again at each"
                " turn",
                partitions[0],
                extra=log_event("archive.prune_blocked"),
            )
        self._was_blocked = bool(partitions)
