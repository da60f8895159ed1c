"""Tries again what was given up for a lock that somebody else held, and says who that was."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import TypeVar

import asyncpg

from hybrid_runner.errors import DatabaseError, RunnerError
from hybrid_runner.model.upkeep import Blocker
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.worker_calls import find_blockers
from hybrid_runner.telemetry.log_events import LogEvent, log_event

log = logging.getLogger("hybrid_runner.storage")

T = TypeVar("T")
Connects = Callable[[], Awaitable[Connection]]
"""Opens a second connection, on which the first is watched while it waits."""

LONGEST = 300.0
"""Seconds after which it is given up for good."""
_PAUSES = (1.0, 3.0, 6.0, 10.0)
"""Seconds between tries. A try may hold up others for two: they are to have most of the time."""
_UNNAMED = 3
"""Tries, after the first, in which nobody was seen to hold the lock, before that is given up."""
_LOOK_EVERY = 0.2
_OF_LOCKS = ("55P03", "40P01")
"""A lock was not to be had, or two sessions waited for each other."""


async def until_locks_are_free(
    attempt: Callable[[], Awaitable[T]],
    connection: Connection,
    connects: Connects | None = None,
    *,
    longest: float = LONGEST,
    what: str = "migrate",
    event: LogEvent = "schema.migration_waits",
) -> T:
    """What `attempt` returns; it is called again whenever Postgres refused it for a lock. `what` it
    does is said to whoever has to do it again.
    """
    ends = time.monotonic() + longest
    said: object = None
    # The first try is not watched: most locks are held for moments.
    for number, pause in enumerate(chain(_PAUSES, repeat(_PAUSES[-1]))):
        async with _watched(connection, connects if number else None) as seen:
            try:
                return await attempt()
            except (asyncpg.PostgresError, RunnerError) as error:
                if getattr(error, "sqlstate", None) not in _OF_LOCKS:
                    raise
                refused = error
        blocker = seen[-1] if seen else None
        who = "somebody" if blocker is None else str(blocker)
        remedy = "let it end" if blocker is None else blocker.remedy
        is_named = blocker is not None or connects is None or number >= _UNNAMED
        if time.monotonic() > ends and is_named:
            raise DatabaseError(
                f"gave up after {longest:.0f} s, since {who} holds a lock: {remedy}, and {what}"
                " again"
            ) from refused
        if number and said != (blocker and blocker.pid):
            said = blocker and blocker.pid
            log.warning(
                "waiting for a lock that %s holds: %s",
                who,
                remedy,
                extra=log_event(event),
            )
        await asyncio.sleep(pause)
    raise AssertionError("there is no last pause")


@asynccontextmanager
async def _watched(
    connection: Connection, connects: Connects | None
) -> AsyncIterator[list[Blocker]]:
    """Who held what this connection waited for meanwhile; the last one last."""
    seen: list[Blocker] = []
    if connects is None:
        yield seen
        return
    watch = asyncio.create_task(_watch(connection.get_server_pid(), connects, seen))
    try:
        yield seen
    finally:
        watch.cancel()
        await asyncio.wait([watch])


async def _watch(pid: int, connects: Connects, seen: list[Blocker]) -> None:
    # Without a second connection it goes on, and says "somebody".
    with contextlib.suppress(RunnerError):
        beside = await connects()
        try:
            while True:
                seen += (await find_blockers(beside, pid))[:1]
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            beside.terminate()
