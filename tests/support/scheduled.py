"""Schedules that are stored, and workers that are said to live."""

from __future__ import annotations

from typing import Any

from hybrid_runner.storage.connections.connection import Connection

_WORKER = """
INSERT INTO hybrid_runner.workers (
    id, queues, kinds, schedules, lease, heartbeat_at, version, host, pid
)
VALUES ($1, '{"default": 20, "mail": 5}', $2, $3, interval '1 hour', now(), 'test', 'here', 1)
"""


async def a_worker(
    database: Connection, name: str = "here", *, kinds: Any = ("work",), schedules: Any = ()
) -> None:
    """A worker that lives for an hour, knows these kinds and declares these schedules."""
    await database.execute(_WORKER, name, [*kinds], [*schedules])
