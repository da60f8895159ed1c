"""Does the chores that the heartbeat was given, one after another, so that a long one never holds up a beat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import FOR_UPKEEP, Link
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.growth import Growth
from hybrid_runner.upkeep.pruner import Pruner

log = logging.getLogger("hybrid_runner.upkeep")

_PARTITIONS_AHEAD = 7
_LONGEST = timedelta(minutes=30)
"""A large partition of which some is kept takes its time to be written anew."""


class Chores:
    """`partitions`, `prune` and `growth`, on a connection of their own; what fails has its next turn after its pause."""

    def __init__(self, dsn: str) -> None:
        self._link = Link(dsn, FOR_UPKEEP, timeout=_LONGEST.total_seconds())
        self._pruner = Pruner(self._link)
        self._growth = Growth(self._link)
        self._actions = {"partitions": self._make_partitions, "prune": self._pruner.prune, "growth": self._growth.look}
        self._due: list[str] = []
        self._given = asyncio.Event()

    @property
    def pinned(self) -> tuple[str, ...]:
        """Who keeps vacuum from cleaning up, if we were the last to look."""
        return self._growth.pinned

    def give(self, names: Iterable[str | None]) -> None:
        """Do these soon; names that are not ours are somebody else's."""
        self._due += [name for name in names if name in self._actions and name not in self._due]
        self._given.set()

    async def run(self) -> None:
        """Do what is given, until cancelled."""
        while True:
            await self._given.wait()
            self._given.clear()
            while self._due:
                await self._do(self._due.pop(0))

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()

    async def _do(self, name: str) -> None:
        try:
            await self._actions[name]()
        except RunnerError as error:
            log.warning("%s: %s; again at its next turn", name, error, extra=log_event("upkeep.failed"))
        except Exception:
            log.exception("%s failed; again at its next turn", name, extra=log_event("upkeep.failed"))

    async def _make_partitions(self) -> None:
        await statements.make_archive_partitions(self._link, _PARTITIONS_AHEAD)
