"""A worker's connections to one database, except those of the listener and of upkeep."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.connections.session_settings import (
    FOR_SETTLING,
    FOR_SETTLING_ROWS,
    for_claims,
    for_heartbeat,
    for_rows,
    named,
)

LINGER = 30.0
"""Seconds for which a connection is kept that is not used. At rest a worker keeps three: its
listener's, its heartbeat's, and the one that claims, which the next job must not wait for.
"""

_ROWS = 3


class Connections:
    """One connection for each purpose, so that no statement waits for one of another kind."""

    def __init__(self, dsn: str, *, flush_claims: bool, lease: timedelta) -> None:
        self.reachability = Reachability()
        self.claims = LazyConnection(
            dsn, named("claims", for_claims(flushed=flush_claims)), reachability=self.reachability
        )
        self.settles = LazyConnection(
            dsn,
            named("settles", FOR_SETTLING),
            linger=LINGER,
            reachability=self.reachability,
        )
        self.row_settles = LazyConnection(
            dsn,
            named("row settles", FOR_SETTLING_ROWS),
            linger=LINGER,
            reachability=self.reachability,
        )
        """For jobs about rows of attached tables, which may be slow."""
        self.courtesies = LazyConnection(
            dsn,
            named("courtesies", FOR_SETTLING),
            linger=LINGER,
            reachability=self.reachability,
        )
        """For statements whose loss does no harm: progress, questions about missed rings."""
        self._rows = tuple(
            LazyConnection(
                dsn,
                named("rows", for_rows(flushed=flush_claims)),
                linger=LINGER,
                reachability=self.reachability,
            )
            for _ in range(_ROWS)
        )
        self.patience = min(10.0, max(1.0, lease.total_seconds() / 3))
        """Seconds that a heartbeat may take: the lease must not end while one waits."""
        self.heartbeat = LazyConnection(
            dsn,
            named("heartbeat", for_heartbeat(self.patience)),
            timeout=self.patience,
            reachability=self.reachability,
        )
        """Used in the heartbeat's thread, which also closes it."""
        self._all = self.claims, self.settles, self.row_settles, self.courtesies, *self._rows

    def of_source(self, source: int) -> LazyConnection:
        """For the rows of an attached table. There are several, so that a slow table does not hold
        up all others.
        """
        return self._rows[source % _ROWS]

    def suspect(self, patience: float) -> None:
        """Give statements that wait so many seconds: the network may have lost their answers."""
        for connection in self._all:
            connection.suspect(patience)

    async def close(self) -> None:
        """Close all but the heartbeat's."""
        await asyncio.gather(*(connection.close() for connection in self._all))
