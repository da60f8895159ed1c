"""The list of duties: work that one worker of the fleet, any of them, does once in a while.

A row of `hybrid_runner.duties` says when a duty was last given out. After its period the next
heartbeat of any worker is given it again. Those of an application's own have no row from the
beginning: a worker that knows them adds it when it starts. The one of `sources` is there while
tables are attached, that of `monitors` where monitors are installed, that of
`schedules` while there are schedules. To add a duty, see
CONTRIBUTING.md.
"""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.handlers.registry import Registry
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.duties.expired_jobs import EndExpiredJobs
from hybrid_runner.upkeep.duties.growth import GrowthWatch
from hybrid_runner.upkeep.duties.keys import Keys
from hybrid_runner.upkeep.duties.monitors import Monitors
from hybrid_runner.upkeep.duties.orphaned_jobs import RescueOrphanedJobs
from hybrid_runner.upkeep.duties.partitions import Partitions
from hybrid_runner.upkeep.duties.prune import Prune
from hybrid_runner.upkeep.duties.queue_depths import QueueDepths
from hybrid_runner.upkeep.duties.reconcile import Reconcile
from hybrid_runner.upkeep.duties.schedules import Schedules
from hybrid_runner.upkeep.duties.signals import Signals
from hybrid_runner.upkeep.duties.sources import ROW_CHECK, Sources
from hybrid_runner.upkeep.duties.unknown_kinds import UnknownKinds
from hybrid_runner.upkeep.rescuer import Rescuer


class Duties:
    """All duties of a worker. Those that other parts ask something have attributes of their own."""

    def __init__(
        self,
        rescuer: Rescuer,
        registry: Registry | None = None,
        row_check: timedelta = ROW_CHECK,
    ) -> None:
        self.growth = GrowthWatch()
        self.queue_depths = QueueDepths()
        self.unknown_kinds = UnknownKinds()
        self.expired_jobs = EndExpiredJobs()
        self.signals = Signals()
        self.sources = Sources(row_check)
        self.monitors = Monitors()
        self.schedules = Schedules()
        self._repairs = Counter(table.RECONCILER_REPAIRS)
        registry = registry or Registry()
        self.all: tuple[Duty, ...] = (
            RescueOrphanedJobs(rescuer),
            Partitions(),
            Prune(),
            self.growth,
            self.queue_depths,
            self.unknown_kinds,
            self.expired_jobs,
            self.signals,
            Keys(),
            self.sources,
            self.monitors,
            self.schedules,
            *(Reconcile(each, self._repairs) for each in registry.reconcilers),
        )

    @property
    def own(self) -> list[tuple[str, timedelta]]:
        """The application's own, by name and period."""
        return [(duty.name, duty.every) for duty in self.all if isinstance(duty, Reconcile)]

    def metric_values(self) -> MetricValues:
        """What duties of this worker measure and count. May be called from any thread."""
        repairs = self._repairs.read()
        return {
            **self.queue_depths.metric_values(),
            **self.signals.metric_values(),
            **self.sources.metric_values(),
            **self.monitors.metric_values(),
            **self.schedules.metric_values(),
            **self.unknown_kinds.metric_values(),
            **self.expired_jobs.metric_values(),
            **({table.RECONCILER_REPAIRS.name: repairs} if repairs else {}),
        }
