"""The server's queue of notifications, filled by somebody who may do no more than connect."""

from __future__ import annotations

import asyncpg

from hybrid_runner.storage.connections.connection import Connection

_SIZES = (7900, 1000, 100, 1)
"""Bytes of a notification; smaller ones where a larger one finds no room."""


async def fill_queue(idle: Connection, other: Connection) -> None:
    """One session listens and reads nothing, since its transaction goes on; another notifies until
    there is no room. It is emptied when the first session ends.
    """
    await idle.execute("LISTEN chaos_queue")
    await idle.execute("BEGIN")
    await idle.execute("SELECT 1")
    for size in _SIZES:
        try:
            while True:
                await other.execute("SELECT pg_notify('chaos_queue', repeat('x', $1))", size)
        except asyncpg.ProgramLimitExceededError:
            continue
