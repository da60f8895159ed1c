"""What clients do, by chance from a seed: a few operations in a transaction, which stays open for a
while and may be rolled back.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import asyncpg

from hybrid_runner import Runner
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection
from tests.behaviour.operations.laws import ENDS
from tests.behaviour.operations.records import Known, Pause, Records, Signal

QUEUES = ("default", "other")
_NOW = "SELECT clock_timestamp()"
_INSERT = """
INSERT INTO hybrid_runner.jobs (kind, queue, priority, payload, run_at)
VALUES ($1, $2, $3, jsonb_build_object('mark', $4::bigint), clock_timestamp() + $5::interval)
RETURNING id
"""
_SIGNAL = "SELECT hybrid_runner.signal($1, to_jsonb($2::bigint))"
_VERSION = "SELECT version FROM hybrid_runner.jobs WHERE id = $1"
_AMEND = """
SELECT hybrid_runner.amend($1, $2, jsonb_build_object('mark', $3::bigint), $4,
    clock_timestamp() + $5::interval)
"""
_KINDS = tuple(ENDS)
_NOT_YET = datetime(9999, 1, 1, tzinfo=UTC)
_marks = itertools.count(1)


@dataclass
class Said:
    """What the operations of one transaction were answered; it counts once that has committed."""

    stored: list[tuple[int, int]] = field(default_factory=list)
    """New jobs: id and mark."""
    changed: list[tuple[int, int]] = field(default_factory=list)
    """Replaced and amended ones: id and mark."""
    answers: list[tuple[int, str]] = field(default_factory=list)
    """Of cancels and retries."""
    gathering: list[int] = field(default_factory=list)
    """New jobs that wait for signals."""
    signals: list[tuple[int, int]] = field(default_factory=list)
    """The job and the mark of each signal."""


class Client:
    """One connection, and a chance of its own."""

    def __init__(
        self, app: Runner, connection: Connection, records: Records, chance: random.Random
    ) -> None:
        self._app = app
        self._connection = connection
        self._records = records
        self._chance = chance
        self.operations = 0
        self._ways: list[tuple[int, Callable[[Said], Awaitable[None]]]] = [
            (5, self._insert),
            (4, self._enqueue),
            (2, self._enqueue_many),
            (3, self._enqueue_keyed),
            (2, self._enqueue_many_keyed),
            (3, self._cancel),
            (2, self._retry),
            (3, self._amend),
            (2, self._insert_gathering),
            (5, self._signal),
        ]

    async def work_until(self, end: float) -> None:
        """One transaction after the other, until the event loop's clock says so."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            await asyncio.sleep(self._chance.uniform(0, 0.1))
            await self._transaction()

    async def _transaction(self) -> None:
        said, transaction = Said(), self._connection.transaction()
        await transaction.start()
        try:
            for _ in range(self._chance.randint(1, 4)):
                weights, ways = zip(*self._ways, strict=True)
                [way] = self._chance.choices(ways, weights)
                await way(said)
                self.operations += 1
            if self._chance.random() < 0.3:
                await asyncio.sleep(self._chance.uniform(0, 1.5))
        except (asyncpg.PostgresError, RunnerError):  # a deadlock, or a lock that somebody keeps
            await transaction.rollback()
            self._undo(said)
            return
        if self._chance.random() < 0.1:
            await transaction.rollback()
            self._undo(said)
            return
        # Before the commit: a worker may be faster than the answer to it.
        self._touch(said)
        await transaction.commit()
        await self._keep(said)

    def _touch(self, said: Said) -> None:
        for job_id, mark in said.stored:
            self._known(job_id).marks.add(mark)
        for job_id, mark in said.changed:
            known = self._known(job_id)
            known.touched = True
            known.marks.add(mark)
        for job_id, answer in said.answers:
            self._known(job_id).answers.append(answer)

    async def _keep(self, said: Said) -> None:
        committed: datetime = await self._connection.fetchval(_NOW)
        for job_id, _ in said.stored:
            self._known(job_id).claimable = committed
        self._records.gathering += said.gathering
        for job_id, mark in said.signals:
            self._records.signals[mark] = Signal(job_id, committed)

    def _undo(self, said: Said) -> None:
        self._records.undone.update(job_id for job_id, _ in said.stored)

    def _known(self, job_id: int) -> Known:
        return self._records.known.setdefault(job_id, Known(_NOT_YET))

    def _some_job(self) -> int | None:
        """One of those that were committed of late."""
        ids = list(self._records.known)[-200:]
        return self._chance.choice(ids) if ids else None

    def _delay(self) -> timedelta:
        """In the past, now, or soon."""
        return timedelta(seconds=self._chance.choice([-60, -0.3, 0, 0, 0, 0.5, 2]))

    # --- operations

    async def _insert(self, said: Said) -> None:
        mark, kind = next(_marks), self._chance.choice(_KINDS)
        job_id = await self._connection.fetchval(
            _INSERT,
            kind,
            self._chance.choice(QUEUES),
            self._chance.choice([0, 5, 5, 9]),
            mark,
            self._delay(),
        )
        said.stored.append((job_id, mark))

    async def _insert_gathering(self, said: Said) -> None:
        mark = next(_marks)
        job_id = await self._connection.fetchval(
            _INSERT, "gathers", self._chance.choice(QUEUES), 5, mark, timedelta()
        )
        said.stored.append((job_id, mark))
        said.gathering.append(job_id)

    async def _signal(self, said: Said) -> None:
        """To one of the jobs that were put in of late, whether it waits or not."""
        if ids := self._records.gathering[-20:]:
            job_id, mark = self._chance.choice(ids), next(_marks)
            await self._connection.execute(_SIGNAL, f"go {job_id}", mark)
            said.signals.append((job_id, mark))

    async def _enqueue(self, said: Said) -> None:
        mark = next(_marks)
        handle = await self._app.enqueue(
            self._chance.choice(_KINDS),
            {"mark": mark},
            queue=self._chance.choice(QUEUES),
            delay=max(timedelta(), self._delay()),
            connection=self._connection,
        )
        said.stored.append((handle.id, mark))

    async def _enqueue_many(self, said: Said) -> None:
        marks = [next(_marks) for _ in range(self._chance.randint(2, 20))]
        stored = await self._app.enqueue_many(
            self._chance.choice(_KINDS),
            [{"mark": mark} for mark in marks],
            queue=self._chance.choice(QUEUES),
            connection=self._connection,
        )
        said.stored += [(one.id, mark) for one, mark in zip(stored, marks, strict=True)]

    async def _enqueue_keyed(self, said: Said) -> None:
        mark = next(_marks)
        handle = await self._app.enqueue(
            "naps",
            {"mark": mark},
            key=f"key {self._chance.randrange(30)}",
            on_conflict=self._chance.choice(["exists", "replace"]),
            delay=max(timedelta(), self._delay()),
            connection=self._connection,
        )
        self._keyed(said, handle.id, mark, handle.enqueued)

    async def _enqueue_many_keyed(self, said: Said) -> None:
        marks = [next(_marks) for _ in range(self._chance.randint(2, 8))]
        numbers = self._chance.sample(range(30), len(marks))
        keys = {mark: f"key {number}" for mark, number in zip(marks, numbers, strict=True)}
        stored = await self._app.enqueue_many(
            "naps",
            [{"mark": mark} for mark in marks],
            key=lambda payload: keys[payload["mark"]],
            on_conflict=self._chance.choice(["exists", "replace"]),
            connection=self._connection,
        )
        for one, mark in zip(stored, marks, strict=True):
            self._keyed(said, one.id, mark, one.enqueued)

    def _keyed(self, said: Said, job_id: int, mark: int, outcome: str) -> None:
        if outcome == "inserted":
            said.stored.append((job_id, mark))
        elif outcome == "replaced":  # perhaps one of this transaction's own, which may be undone
            said.changed.append((job_id, mark))

    async def _cancel(self, said: Said) -> None:
        if (job_id := self._some_job()) is not None:
            self._known(job_id).touched = True
            answer = await self._connection.fetchval("SELECT hybrid_runner.cancel($1)", job_id)
            said.answers.append((job_id, answer))

    async def _retry(self, said: Said) -> None:
        if (job_id := self._some_job()) is not None:
            self._known(job_id).touched = True
            answer = await self._connection.fetchval("SELECT hybrid_runner.retry($1)", job_id)
            said.answers.append((job_id, answer))

    async def _amend(self, said: Said) -> None:
        job_id = self._some_job()
        if job_id is None:
            return
        version = await self._connection.fetchval(_VERSION, job_id)
        if version is None:
            return
        self._known(job_id).touched = True
        mark = next(_marks)
        answer = await self._connection.fetchval(
            _AMEND, job_id, version, mark, self._chance.choice([0, 5, 9]), self._delay()
        )
        if answer == "amended":
            said.changed.append((job_id, mark))


async def pause_now_and_then(
    app: Runner, connection: Connection, records: Records, chance: random.Random, end: float
) -> None:
    """One client alone pauses queues, so that it knows when they surely were."""
    loop = asyncio.get_running_loop()
    while loop.time() < end:
        queue = chance.choice(QUEUES)
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        await app.pause(queue)
        since: datetime = await connection.fetchval(_NOW)
        await asyncio.sleep(chance.uniform(0, 1))
        until: datetime = await connection.fetchval(_NOW)
        await app.resume(queue)
        records.pauses.append(Pause(queue, since, until))
