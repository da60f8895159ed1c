"""Waiting for something to be so, when it has no signal of its own."""

from __future__ import annotations

from hybrid_runner.storage.connections import Connection


async def until_blocked(observer: Connection, blocked: Connection) -> None:
    """Return once that session waits for another one's lock; the test's time-out bounds it."""
    while not await observer.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", blocked.get_server_pid()):
        pass
