"""Work that is to be done once in a while by one worker of the fleet, whichever: the list of it.

A row of `hybrid_runner.duties` says when each was last given out; the next heartbeat of any worker
after its period is given it again. To add one, see "Adding a duty" in CONTRIBUTING.md.
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
    """All duties, made once in each worker; those that others ask something have a name here."""

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
        """In the order in which they are done when several are given at once."""
