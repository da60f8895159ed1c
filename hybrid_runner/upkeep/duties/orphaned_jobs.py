"""Rescues running jobs that no living worker has."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.rescuer import Rescuer


class RescueOrphanedJobs(Duty):
    """The worker that declares another one dead rescues its jobs at once. This duty finds jobs
    whose worker was never declared dead.
    """

    name = "orphaned_jobs"
    every = timedelta(minutes=10)

    def __init__(self, rescuer: Rescuer) -> None:
        self._rescuer = rescuer

    async def run(self, connection: Fetches) -> None:
        await self._rescuer.rescue(connection)
