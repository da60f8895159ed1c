"""What upkeep asks about: partitions, queues, workers, causes of bloat."""

from __future__ import annotations

from typing import Literal, NamedTuple

PruneAnswer = Literal["dropped", "emptied", "rewritten", "merged", "kept", "blocked", "busy"]
"""What became of one partition of the archive: see sql/queries/prune.sql."""


class Pruned(NamedTuple):
    """What one call did to one partition of the archive."""

    what: PruneAnswer
    partition: str
    bytes: int

    @property
    def in_vain(self) -> bool:
        """Whether somebody was in the way."""
        return self.what == "blocked" or self.what == "busy"  # noqa: PLR1714  # of a set mypy checks nothing


class BloatCause(NamedTuple):
    """Who lets tables grow."""

    name: str
    complaint: str


class QueueDepth(NamedTuple):
    """How one queue stands, as Postgres has it: see sql/queries/queue_figures.sql."""

    queue: str
    due: int
    scheduled: int
    running: int
    """As the workers' last heartbeats said."""
    oldest_due: float
    """Seconds."""
    paused: bool
    workers: int


class WorkerDemand(NamedTuple):
    """What an autoscaler asks about one queue: see sql/queries/scale.sql."""

    queue: str
    backlog: int
    running: int
    slots: int
    workers: int
    wanted: int
