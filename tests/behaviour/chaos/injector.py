"""Carries out the plan; each fault is a line, as it happens."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import assert_never

from hybrid_runner.storage.connections.connection import Connection
from tests.behaviour.chaos.deaths import Absence, Span
from tests.behaviour.chaos.faults import Fault, What
from tests.behaviour.chaos.fleet import Member
from tests.behaviour.chaos.full_queue import fill_queue
from tests.behaviour.chaos.newcomers import Newcomers
from tests.behaviour.chaos.postgres import AWAY, PRODUCER, WORKER, Postgres, can_fill_queue
from tests.behaviour.rows.table import APPLICATION
from tests.support import faketime

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
_LOCK_ALL = "LOCK TABLE hybrid_runner.jobs IN ACCESS EXCLUSIVE MODE"
_LOCK = """
SELECT j.id FROM hybrid_runner.jobs AS j
WHERE ('x' || substr(md5(j.id::text), 1, 8))::bit(32)::bigint < $1 * 4294967296
FOR UPDATE SKIP LOCKED
"""


_FREEZES = frozenset({What.FREEZE_LONG, What.FREEZE_SHORT})
_CUTS_OFF = frozenset(
    {
        What.TERMINATE_SOME,
        What.TERMINATE_ALL,
        What.LIMIT,
        What.RESTART_FAST,
        What.RESTART_IMMEDIATE,
        What.KILL_SERVER,
    }
)


class Injector:
    """Faults may overlap; each is over before `run` returns."""

    def __init__(
        self,
        postgres: Postgres,
        fleet: Sequence[Member],
        newcomers: Newcomers,
        say: Callable[[str], None],
    ) -> None:
        self.done: Counter[What] = Counter()
        self.over_at = 0.0
        self.absences: list[Absence] = []
        self.queue_was_full: list[Span] = []
        self._postgres = postgres
        self._fleet = fleet
        self._newcomers = newcomers
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
        since = time.time()
        await self._do(fault)
        if fault.what in _FREEZES:
            self.absences.append(Absence(fault.worker, Span(since, time.time())))
        elif fault.what in _CUTS_OFF:
            self.absences.append(Absence(None, Span(since, time.time())))

    async def _do(self, fault: Fault) -> None:
        match fault.what:
            case What.KILL | What.STOP:
                await self._fleet[fault.worker].end(_SIGNALS[fault.what], fault.seconds)
            case What.FREEZE_LONG | What.FREEZE_SHORT:
                await self._fleet[fault.worker].freeze(fault.seconds)
            case What.TERMINATE_SOME | What.TERMINATE_ALL | What.LIMIT:
                await self._cut_off(fault)
            case What.RESTART_FAST | What.RESTART_IMMEDIATE | What.KILL_SERVER:
                await self._postgres.end(_SIGNALS[fault.what])
            case What.LOCK | What.LOCK_SHORT | What.LOCK_LONG:
                await self._lock(fault)
            case What.NEWCOMER_IN_LOCK | What.NEWCOMER_AFTER_LOCK | What.NEWCOMER_WITHOUT_SERVER:
                is_away = fault.what is What.NEWCOMER_WITHOUT_SERVER
                met = self._be_away(fault.seconds) if is_away else self._lock(fault)
                await asyncio.gather(met, self._newcomers.live(fault.newcomer))
            case What.CLOCK:
                await self._set_clock(fault)
            case What.FULL_QUEUE:
                await self._fill_queue(fault)
            case What.PAUSE:
                await self._pause(fault)
            case _:
                assert_never(fault.what)

    async def _pause(self, fault: Fault) -> None:
        await self._postgres.fetch("SELECT hybrid_runner.pause($1)", fault.queue)
        await asyncio.sleep(fault.seconds)
        await self._postgres.fetch("SELECT hybrid_runner.resume($1)", fault.queue)

    async def _cut_off(self, fault: Fault) -> None:
        """Those that are connected beyond a limit have to come again."""
        if fault.what is What.TERMINATE_SOME:
            await self._postgres.fetch(_TERMINATE, [WORKER], fault.share, str(fault.at))
        elif fault.what is What.TERMINATE_ALL:
            await self._postgres.fetch(_TERMINATE, [WORKER, PRODUCER, APPLICATION], 2.0, "")
        else:
            await self._postgres.fetch(f"ALTER ROLE {WORKER} CONNECTION LIMIT {fault.limit}")
            await self._postgres.fetch(_TERMINATE, [WORKER], 2.0, "")
            await asyncio.sleep(fault.seconds)
            await self._postgres.fetch(f"ALTER ROLE {WORKER} CONNECTION LIMIT -1")

    async def _be_away(self, seconds: float) -> None:
        since = time.time()
        async with self._postgres.away():
            await asyncio.sleep(seconds)
        self.absences.append(Absence(None, Span(since, time.time())))

    async def _lock(self, fault: Fault) -> None:
        """Held until the time is over, or the server is gone, which lets go as well."""
        await self._postgres.until_up()

        async def hold(connection: Connection) -> None:
            async with connection.transaction():
                if fault.what is What.LOCK:
                    await connection.fetch(_LOCK, fault.share)
                else:
                    await connection.execute(_LOCK_ALL)
                await asyncio.sleep(fault.seconds)

        try:
            async with self._postgres.connected() as connection:
                await hold(connection)
        except AWAY:
            self._say("the lock was let go early")

    async def _set_clock(self, fault: Fault) -> None:
        """Set for a while, and then set right."""
        clock = self._postgres.clock
        if clock is None:
            self._skip(fault, faketime.why_absent())
            return
        with clock.ahead(fault.step):
            await asyncio.sleep(fault.seconds)

    async def _fill_queue(self, fault: Fault) -> None:
        if not can_fill_queue():
            self._skip(fault, "the queue of notifications can be made small since PostgreSQL 17")
            return
        await self._postgres.until_up()
        try:
            async with self._postgres.connected() as idle, self._postgres.connected() as other:
                await fill_queue(idle, other)
                since = time.time()
                await asyncio.sleep(fault.seconds)
                self.queue_was_full.append(Span(since, time.time()))
        except AWAY:
            self._say("the queue of notifications was emptied early")

    def _skip(self, fault: Fault, why: str) -> None:
        self.done[fault.what] -= 1
        self._say(f"SKIPPED: {why}")
