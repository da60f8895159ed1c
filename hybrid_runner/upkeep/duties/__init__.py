"""The list of duties: work that one worker of the fleet, any of them, does once in a while.

A row of `hybrid_runner.duties` says when a duty was last given out. After its period the next
heartbeat of any worker is given it again. To add one, see "Adding a duty" in CONTRIBUTING.md.
"""

from __future__ import annotations

from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.duties.growth import GrowthWatch
from hybrid_runner.upkeep.duties.orphaned_jobs import RescueOrphanedJobs
from hybrid_runner.upkeep.duties.partitions import Partitions
from hybrid_runner.upkeep.duties.prune import Prune
from hybrid_runner.upkeep.duties.queue_depths import QueueDepths
from hybrid_runner.upkeep.rescuer import Rescuer


class Duties:
    """All duties of a worker. Those that other parts ask something have attributes of their own."""

    def __init__(self, rescuer: Rescuer) -> None:
        self.growth = GrowthWatch()
        self.queue_depths = QueueDepths()
        self.all: tuple[Duty, ...] = (
            RescueOrphanedJobs(rescuer),
            Partitions(),
            Prune(),
            self.growth,
            self.queue_depths,
        )
