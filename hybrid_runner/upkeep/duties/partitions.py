"""Has the archive's partitions of the next days ready."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.upkeep.duties.duty import Duty

_DAYS_AHEAD = 7


class Partitions(Duty):
    """Jobs that end while there is no partition for their hour go to one for all of them."""

    name = "partitions"
    every = timedelta(hours=1)

    async def run(self, connection: Fetches) -> None:
        """Make those that are missing."""
        await worker_calls.make_archive_partitions(connection, _DAYS_AHEAD)
