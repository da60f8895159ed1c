"""A worker's connections to one database, but for those of its listener and its upkeep."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.reachability import Reachability
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, for_claims, named


class Connections:
    """One for each purpose, so that none waits for another."""

    def __init__(self, dsn: str, *, flush_claims: bool, lease: timedelta) -> None:
        self.reachability = Reachability()
        self.claims = LazyConnection(
            dsn, named("claims", for_claims(flushed=flush_claims)), reachability=self.reachability
        )
        self.settles = LazyConnection(
            dsn, named("settles", FOR_SETTLING), reachability=self.reachability
        )
        self.courtesies = LazyConnection(
            dsn, named("courtesies", FOR_SETTLING), reachability=self.reachability
        )
        """For what may be lost: progress, changes, questions about missed rings."""
        self.patience = min(10.0, max(1.0, lease.total_seconds() / 3))
        """Seconds for a heartbeat: a lease must not end while one waits for its answer."""
        self.heartbeat = LazyConnection(
            dsn, named("heartbeat", {}), timeout=self.patience, reachability=self.reachability
        )
        """In a thread of its own, which closes it."""
        self._all = self.claims, self.settles, self.courtesies

    def suspect(self, patience: float) -> None:
        """The network may have swallowed an answer: give one that is on its way so many seconds."""
        for connection in self._all:
            connection.suspect(patience)

    async def close(self) -> None:
        """Close them politely, for a moment at most."""
        await asyncio.gather(*(connection.close() for connection in self._all))
