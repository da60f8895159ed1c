"""What upkeep reads from Postgres: partitions, queues, workers, causes of bloat."""

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
    def prevented(self) -> bool:
        """Whether another transaction prevented it."""
        return self.what == "blocked" or self.what == "busy"  # noqa: PLR1714  # of a set mypy checks nothing


class BloatCause(NamedTuple):
    """Who keeps vacuum from cleaning up, and what to do about it."""

    name: str
    complaint: str


class QueueDepth(NamedTuple):
    """How many jobs one queue has in each state: see sql/queries/queue_depths.sql."""

    queue: str
    due: int
    scheduled: int
    running: int
    """According to the last heartbeats of the workers."""
    oldest_due: float
    """Seconds since the oldest due job was due."""
    paused: bool
    workers: int
    opened: bool = True
    """False: no worker has ever worked on it; whoever may insert can make up such names."""


class WorkerDemand(NamedTuple):
    """How many workers one queue could use, for autoscalers: see sql/queries/scale.sql."""

    queue: str
    backlog: int
    running: int
    slots: int
    workers: int
    wanted: int
