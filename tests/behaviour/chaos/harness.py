"""Starts everything, waits until the work is done, and hands what is written down to the
checker.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid_runner import Runner
from hybrid_runner.embedded.probe import NAME
from tests.behaviour.chaos import faults, report
from tests.behaviour.chaos.checker import Violation, check
from tests.behaviour.chaos.deaths import wrongly_declared_dead
from tests.behaviour.chaos.fleet import ROOT, Member
from tests.behaviour.chaos.injector import Injector
from tests.behaviour.chaos.newcomers import Newcomers
from tests.behaviour.chaos.orders import QUEUES
from tests.behaviour.chaos.postgres import CLIENT, PRODUCER, WORKER, Postgres
from tests.behaviour.chaos.records import Records
from tests.behaviour.chaos.tables import read_archive, read_followers, read_left
from tests.behaviour.rows import laws, table
from tests.behaviour.rows.application import work_on_rows
from tests.behaviour.rows.records import Records as RowRecords
from tests.behaviour.rows.table import APPLICATION
from tests.support import faketime

LEASE = 3.0
_QUEUES = len(QUEUES) + 1  # and that of the rows
_AFTERWARDS = 5.0
_HEALTHY = (
    "SELECT count(*) FROM hybrid_runner.workers WHERE dead_at IS NULL AND heartbeat_at + lease >"
    " clock_timestamp()"
)
_ASLEEP = """
SELECT count(*) FROM hybrid_runner.sleepers AS s
WHERE s.is_asleep AND EXISTS (SELECT FROM pg_stat_get_activity(s.pid)) -- not of one that was killed
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is made of."""

    seconds: float
    workers: int
    jobs: int
    seed: int
    patience: float
    """Seconds that the workers have to finish the work after the last insert and the last fault."""


@dataclass(slots=True)
class Outcome:
    """What came of it: figures, and what is wrong."""

    figures: list[tuple[str, str]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class Harness:
    """One run in one folder; `say` gets each fault as it happens."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._folder = folder
        self._say = say
        self._outcome = Outcome()
        self._rows = RowRecords()
        self._plan = faults.plan(options.seed, options.seconds, options.workers, LEASE)
        # What was due by a clock that was ahead may have to wait for the true time to come there.
        self._patience = options.patience + max(
            (abs(fault.step) for fault in self._plan if fault.what is faults.What.CLOCK), default=0
        )

    async def run(self) -> Outcome:
        """Insert and disturb, wait, check."""
        options = self._options
        async with Postgres.running(
            self._folder / "postgres", with_clock=self._sets_clock()
        ) as postgres:
            fleet = [
                Member(n, postgres.dsn(WORKER), LEASE, self._folder, self._complain)
                for n in range(options.workers)
            ]
            newcomers = Newcomers(postgres.dsn(WORKER), LEASE, self._folder, self._complain)
            await self._attach(postgres)
            injector = Injector(postgres, fleet, newcomers, self._say)
            async with _living(fleet):
                await self._until(postgres, _HEALTHY, options.workers)
                await self._disturb(postgres, injector)
                if not await self._until(postgres, table.QUIET, 0):
                    self._say(f"after {self._patience:g} s there is still something to do")
                if not await self._until(postgres, _HEALTHY, options.workers):
                    self._complain("not all workers are healthy in the end")
                # Whoever listens and has nothing to do sleeps, with a row for each queue; a deaf
                # one looks healthy otherwise.
                if not await self._until(postgres, _ASLEEP, options.workers * _QUEUES):
                    self._complain("not all workers hear in the end")
                archive, left = await read_archive(postgres), await read_left(postgres)
                followers = await read_followers(postgres)
                await self._rows.read(postgres.fetch, self._folder)
                await asyncio.gather(*(member.leave() for member in fleet))
        members = [*fleet, *newcomers.members]
        self._judge(Records.read(self._folder, archive, left, followers), members, injector)
        return self._outcome

    async def _attach(self, postgres: Postgres) -> None:
        """An application's table, before anything is disturbed."""
        async with postgres.connected() as connection:
            await table.make(connection, with_login=True)
        async with Runner(postgres.dsn(NAME)) as app:
            await table.attach(app)

    def _sets_clock(self) -> bool:
        wanted = any(fault.what is faults.What.CLOCK for fault in self._plan)
        if wanted and faketime.find() is None:
            self._say(f"SKIPPED, all that sets the server's clock: {faketime.why_absent()}")
            return False
        return wanted

    async def _disturb(self, postgres: Postgres, injector: Injector) -> None:
        options = self._options
        async with self._producing(postgres, 0, options.jobs, options.seconds):
            await asyncio.gather(
                injector.run(self._plan, time.monotonic()),
                work_on_rows(postgres.dsn(APPLICATION), self._rows, options.seconds, options.seed),
            )
            self._say("no more faults")
        async with self._producing(
            postgres,
            options.jobs,
            max(20, options.jobs // 50),
            min(_AFTERWARDS, options.seconds / 5),
        ):
            pass
        self._say("no more jobs")

    @asynccontextmanager
    async def _producing(
        self, postgres: Postgres, first: int, jobs: int, seconds: float
    ) -> AsyncIterator[None]:
        """Meanwhile a process inserts so many jobs, numbered from the first on; it is waited
        for.
        """
        arguments = (
            self._folder,
            postgres.dsn(PRODUCER),
            postgres.dsn(CLIENT),
            first,
            jobs,
            seconds,
            self._options.seed,
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.behaviour.chaos.producer",
            *map(str, arguments),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
        )
        try:
            yield
            await self._wait_for_producer(process, seconds + self._patience)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _wait_for_producer(
        self, process: asyncio.subprocess.Process, patience: float
    ) -> None:
        try:
            if code := await asyncio.wait_for(process.wait(), patience):
                self._complain(f"the producer ended with code {code}")
        except TimeoutError:
            self._complain(f"the producer did not end within {patience:g} s")

    async def _until(self, postgres: Postgres, query: str, wanted: int) -> bool:
        """Whether it came to that in time."""
        deadline = time.monotonic() + self._patience
        while (await postgres.fetch(query))[0][0] != wanted:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.1)
        return True

    def _judge(self, records: Records, fleet: list[Member], injector: Injector) -> None:
        logs = {member.number: list(report.read_log(member.log)) for member in fleet}
        log = [line for lines in logs.values() for line in lines]
        for trouble in report.troubles(log):
            self._complain(trouble)
        for death in wrongly_declared_dead(logs, injector.absences, LEASE):
            self._complain(death)
        self._outcome.violations += check(records, injector.queue_was_full)
        self._outcome.violations += [
            Violation("rows", None, what) for what in laws.check(self._rows)
        ]
        self._outcome.figures += [
            (what.value, str(number)) for what, number in sorted(injector.done.items())
        ]
        self._outcome.figures.append(
            ("worker processes", str(sum(member.starts for member in fleet)))
        )
        self._outcome.figures += report.figures(records, log, injector.over_at)
        self._outcome.figures += self._rows.figures()

    def _complain(self, what: str) -> None:
        self._say(what)
        self._outcome.violations.append(Violation("workers", None, what))


@asynccontextmanager
async def _living(fleet: list[Member]) -> AsyncIterator[None]:
    lives = [asyncio.create_task(member.live()) for member in fleet]
    try:
        yield
        await asyncio.gather(*lives)
    finally:
        for member in fleet:
            member.kill()
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
