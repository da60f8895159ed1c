"""Carries out the plan; each fault is a line, as it happens."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import assert_never

from hybrid_runner.storage.connections.connection import Connection
from tests.behaviour.chaos.faults import Fault, What
from tests.behaviour.chaos.fleet import Member
from tests.behaviour.chaos.postgres import AWAY, PRODUCER, WORKER, Postgres

_SIGNALS = {
    What.KILL: signal.SIGKILL,
    What.STOP: signal.SIGTERM,
    What.RESTART_FAST: signal.SIGINT,
    What.RESTART_IMMEDIATE: signal.SIGQUIT,
    What.KILL_SERVER: signal.SIGKILL,
}
_TERMINATE = """
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a
WHERE a.usename = ANY ($1)
    AND ('x' || substr(md5(a.pid::text || $3), 1, 8))::bit(32)::bigint < $2 * 4294967296
"""
_LOCK = """
SELECT j.id FROM hybrid_runner.jobs AS j
WHERE ('x' || substr(md5(j.id::text), 1, 8))::bit(32)::bigint < $1 * 4294967296
FOR UPDATE SKIP LOCKED
"""


class Injector:
    """Faults may overlap; each is over before `run` returns."""

    def __init__(
        self, postgres: Postgres, fleet: Sequence[Member], say: Callable[[str], None]
    ) -> None:
        self.done: Counter[What] = Counter()
        self.over_at = 0.0
        self._postgres = postgres
        self._fleet = fleet
        self._say = say

    async def run(self, faults: Sequence[Fault], began: float) -> None:
        """All of them, each at its time."""
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._at_its_time(fault, began))
        self.over_at = time.time()

    async def _at_its_time(self, fault: Fault, began: float) -> None:
        await asyncio.sleep(began + fault.at - time.monotonic())
        self._say(str(fault))
        self.done[fault.what] += 1
        await self._do(fault)

    async def _do(self, fault: Fault) -> None:
        member, postgres = self._fleet[fault.worker], self._postgres
        match fault.what:
            case What.KILL | What.STOP:
                await member.end(_SIGNALS[fault.what], fault.seconds)
            case What.FREEZE_LONG | What.FREEZE_SHORT:
                await member.freeze(fault.seconds)
            case What.TERMINATE_SOME:
                await postgres.fetch(_TERMINATE, [WORKER], fault.share, str(fault.at))
            case What.TERMINATE_ALL:
                await postgres.fetch(_TERMINATE, [WORKER, PRODUCER], 2.0, "")
            case What.RESTART_FAST | What.RESTART_IMMEDIATE | What.KILL_SERVER:
                await postgres.end(_SIGNALS[fault.what])
            case What.LIMIT:
                await self._limit(fault)
            case What.LOCK:
                await self._lock(fault)
            case What.PAUSE:
                await self._pause(fault)
            case _:
                assert_never(fault.what)

    async def _pause(self, fault: Fault) -> None:
        await self._postgres.fetch("SELECT hybrid_runner.pause($1)", fault.queue)
        await asyncio.sleep(fault.seconds)
        await self._postgres.fetch("SELECT hybrid_runner.resume($1)", fault.queue)

    async def _limit(self, fault: Fault) -> None:
        """Those that are connected beyond it have to come again."""
        await self._postgres.fetch(f"ALTER ROLE {WORKER} CONNECTION LIMIT {fault.limit}")
        await self._postgres.fetch(_TERMINATE, [WORKER], 2.0, "")
        await asyncio.sleep(fault.seconds)
        await self._postgres.fetch(f"ALTER ROLE {WORKER} CONNECTION LIMIT -1")

    async def _lock(self, fault: Fault) -> None:
        """Held until the time is over, or the server is gone, which lets go as well."""

        async def hold(connection: Connection) -> None:
            async with connection.transaction():
                await connection.fetch(_LOCK, fault.share)
                await asyncio.sleep(fault.seconds)

        try:
            async with self._postgres.connected() as connection:
                await hold(connection)
        except AWAY:
            self._say("the locked rows were let go early")
