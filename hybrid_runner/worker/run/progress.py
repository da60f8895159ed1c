"""Writes the progress of running jobs: the latest report of each, many in one statement."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from hybrid_runner.errors import RowLocked, RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.loops import Outage

log = logging.getLogger("hybrid_runner.worker")


@types.coroutine
def stored_elsewhere() -> Generator[Any, None, None]:
    """What `Job.progress` returns outside the loop: awaiting it returns at once, and not awaiting
    it causes no warning.
    """
    yield from ()


class _Stored:
    """Awaiting it ends when a report is stored. Nothing is kept for reports that nobody awaits, as
    those of processes, of which any number may come during an outage.
    """

    __slots__ = ("__weakref__", "_round")

    def __init__(self, its_round: asyncio.Event) -> None:
        self._round = its_round

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._round.wait().__await__()


class ProgressWriter:
    """Takes reports from the loop and from threads; writes only the newest one of each job."""

    def __init__(
        self,
        write: Callable[[Sequence[tuple[int, int, str]]], Awaitable[set[int]]],
        written: Callable[[Sequence[Claim]], None],
    ) -> None:
        self._write = write
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._latest: dict[int, tuple[Claim, str]] = {}
        self._next_round = asyncio.Event()
        """Set once the reports that come now are stored."""
        self._some = asyncio.Event()
        self._outage = Outage("progress")

    def report(self, claim: Claim, said: str) -> Awaitable[None]:
        """Take a report. The awaitable ends when it is stored; in a thread at once."""
        try:
            in_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            in_loop = False
        if not in_loop:
            self._loop.call_soon_threadsafe(self._take, claim, said)
            return stored_elsewhere()
        self._take(claim, said)
        return _Stored(self._next_round)

    def _take(self, claim: Claim, said: str) -> None:
        log.debug("progress %s", said, extra=log_event("job.progressed", job=claim.id))
        self._latest[claim.id] = (claim, said)
        self._some.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            latest, self._latest = self._latest, {}
            this_round, self._next_round = self._next_round, asyncio.Event()
            try:
                await self._store(list(latest.values()))
                self._outage.over()
            except RunnerError as error:  # the reports are dropped, the handlers go on
                await self._outage.pause(error)
            finally:
                this_round.set()

    async def _store(self, reports: Sequence[tuple[Claim, str]]) -> None:
        """Write them; one that Postgres refuses is dropped and holds up no other."""
        try:
            await self._write([(claim.id, claim.number, said) for claim, said in reports])
        except RunnerError as error:
            # Each of them could wait as long for a lock on the whole table.
            if fault_of(error) is Fault.OUTAGE or isinstance(error, RowLocked):
                raise
        else:
            self._written([claim for claim, _ in reports])
            return
        if len(reports) > 1:
            for report in reports:
                await self._store([report])
