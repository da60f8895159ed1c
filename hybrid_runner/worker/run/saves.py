"""Writes the memories that handlers save while they run: the newest of each attempt, many in one
statement.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hybrid_runner.errors import (
    DatabaseUnavailable,
    EnqueueError,
    RowLocked,
    RunnerError,
    StaleClaim,
    ValueRefused,
)
from hybrid_runner.model.claims import Claim
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.run.progress import stored_elsewhere

_MOST_TEXT = 8 * 1024 * 1024
"""Characters of memories in one statement."""
_LOOK = 1.0
"""Seconds between two looks of a thread that waits, whether the loop is still there."""
_UNLOCKED = 0.2
"""Seconds until a memory is written again whose row somebody else has locked."""


@dataclass(slots=True)
class _Save:
    claim: Claim
    text: str
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, int]:
        return self.claim.id, self.claim.number

    def end(self, error: RunnerError | None) -> None:
        if error is None:
            self.claim.data = self.text
        for waiting in self.waiting:
            if waiting.done():  # its handler was cancelled
                continue
            if error is None:
                waiting.set_result(None)
            else:
                waiting.set_exception(error)


class Saves:
    """Keeps each memory until Postgres has it, or refuses it; during an outage, too."""

    def __init__(
        self,
        write: Callable[[Sequence[tuple[int, int, str]]], Awaitable[set[int]]],
        locked: Callable[[Sequence[int]], Awaitable[set[int]]],
    ) -> None:
        self._write = write
        self._locked = locked
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[tuple[int, int], _Save] = {}
        self._aside: dict[tuple[int, int], _Save] = {}
        """Their rows are locked."""
        self._some = asyncio.Event()
        self._outage = Outage("saving memories")
        self._is_closed = False

    def save(self, claim: Claim, text: str) -> Awaitable[None]:
        """Awaiting it ends when it is stored; a thread waits here. StaleClaim when the job is no
        longer this attempt's.
        """
        try:
            in_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            in_loop = False
        if in_loop:
            return self._stored(claim, text)
        self._wait_in_thread(claim, text)
        return stored_elsewhere()

    def close(self) -> None:
        """Nothing more is written: whoever waits is told."""
        self._is_closed = True
        for save in (*self._waiting.values(), *self._aside.values()):
            save.end(_stopped(save.claim))

    def _wait_in_thread(self, claim: Claim, text: str) -> None:
        stored = self._stored(claim, text)
        try:
            future = asyncio.run_coroutine_threadsafe(stored, self._loop)
        except RuntimeError:  # the loop is closed
            stored.close()
            raise _stopped(claim) from None
        while True:
            try:
                return future.result(_LOOK)
            except concurrent.futures.TimeoutError:
                if self._loop.is_closed():
                    raise _stopped(claim) from None
            except concurrent.futures.CancelledError:
                raise _stopped(claim) from None

    async def _stored(self, claim: Claim, text: str) -> None:
        if self._is_closed:
            raise _stopped(claim)
        stored = self._loop.create_future()
        self._add(_Save(claim, text, [stored]))
        self._some.set()
        await stored

    def _add(self, save: _Save, *, newer: bool = True) -> None:
        """Of two memories of one attempt the newer one is written, for whoever waits for either."""
        other = self._aside.get(save.key) or self._waiting.setdefault(save.key, save)
        if other is not save:
            other.waiting += save.waiting
            other.text = save.text if newer else other.text

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._some.wait()
            self._some.clear()
            batch = self._next_batch()
            try:
                await self._store(batch)
            except BaseException:  # whoever runs this starts it again
                self._put_back(batch)
                raise

    def _next_batch(self) -> list[_Save]:
        batch, text = list[_Save](), 0
        for save in self._waiting.values():
            text += len(save.text)
            if batch and text > _MOST_TEXT:
                self._some.set()
                break
            batch.append(save)
        for save in batch:
            del self._waiting[save.key]
        return batch

    async def _store(self, batch: Sequence[_Save]) -> None:
        try:
            stored = await self._write([(*save.key, save.text) for save in batch])
        except RowLocked:
            await self._set_aside(batch)
        except RunnerError as error:
            if fault_of(error) is Fault.OUTAGE:
                await self._outage.pause(error)
                self._put_back(batch)
            elif len(batch) > 1:
                for save in batch:
                    await self._store([save])
            else:
                batch[0].end(_refused(batch[0].claim, error))
        else:
            self._outage.over()
            for save in batch:
                save.end(None if save.claim.id in stored else _stale(save.claim))

    async def _set_aside(self, batch: Sequence[_Save]) -> None:
        """Those whose rows somebody else has locked are written later, the others now."""
        try:
            locked = await self._locked([save.claim.id for save in batch])
        except RunnerError as failure:
            await self._outage.pause(failure)
            self._put_back(batch)
            return
        others = [save for save in batch if save.claim.id not in locked]
        waits = [save for save in batch if save.claim.id in locked]
        if not waits:  # it has come free, or it is another row that a trigger waits for
            others, waits = [], list(batch)
        self._aside |= {save.key: save for save in waits}
        self._loop.call_later(_UNLOCKED, self._take_up, waits)
        if others:
            await self._store(others)

    def _take_up(self, saves: Iterable[_Save]) -> None:
        for save in saves:
            del self._aside[save.key]
        self._put_back(saves)

    def _put_back(self, saves: Iterable[_Save]) -> None:
        for save in saves:
            if self._is_closed:
                save.end(_stopped(save.claim))
            elif any(not waiting.done() for waiting in save.waiting):
                self._add(save, newer=False)
                self._some.set()


def _stale(claim: Claim) -> StaleClaim:
    return StaleClaim(f"job {claim.id} no longer belongs to this attempt: stop working on it")


def _refused(claim: Claim, error: RunnerError) -> RunnerError:
    if isinstance(error, EnqueueError):  # a constraint: it is larger as Postgres writes it
        return ValueRefused(f"the memory of job {claim.id} was not saved: {error}")
    return error


def _stopped(claim: Claim) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"the memory of job {claim.id} was not saved: its worker has stopped"
    )
