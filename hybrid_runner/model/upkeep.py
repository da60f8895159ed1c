"""What upkeep reads from Postgres: partitions, queues, workers, causes of bloat, who has a lock."""

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


class Blocker(NamedTuple):
    """A session that holds a lock, as sql/queries/find_blockers.sql returns it."""

    pid: int
    role: str | None
    application: str | None
    seconds: float | None

    def __str__(self) -> str:
        if self.pid == 0:
            return "a prepared transaction (see pg_prepared_xacts)"
        since = "" if self.seconds is None else f", in a transaction for {self.seconds:.0f} s"
        return f"session {self.pid} ({self.role}, {self.application or 'no name'}{since})"

    @property
    def remedy(self) -> str:
        """What ends it."""
        if self.pid == 0:
            return "COMMIT PREPARED or ROLLBACK PREPARED it"
        return f"let it end, or SELECT pg_terminate_backend({self.pid})"
