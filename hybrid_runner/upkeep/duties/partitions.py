"""Makes the archive's partitions for the next days."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.upkeep.duties.duty import Duty

_DAYS_AHEAD = 7


class Partitions(Duty):
    """Jobs for whose hour there is no partition go to the default partition."""

    name = "partitions"
    every = timedelta(hours=1)

    async def run(self, connection: Fetches) -> None:
        await worker_calls.make_archive_partitions(connection, _DAYS_AHEAD)
