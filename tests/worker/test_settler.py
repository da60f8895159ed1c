"""The settler alone: what Postgres refuses must not hold up, or take along, what it would take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hybrid_runner.errors import DatabaseError, EnqueueError, RowLocked
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.worker import loops
from hybrid_runner.worker.settle.settler import Settler
from hybrid_runner.worker.settle.settlers import Settlers
from tests.support import inside
from tests.support.waiting import equals, has, until


def claim(number: int) -> Claim:
    """The claim of one job."""
    now = datetime.now(UTC)
    return Claim(
        number, "default", "work", 5, "{}", None, None, now, 5, None, None, None, 1, 1, now
    )


async def nothing(_ids: Sequence[int]) -> set[int]:
    return set()


class Table:
    """Postgres, as far as a settler knows it."""

    def __init__(
        self,
        finish: Callable[[Sequence[Finished]], Awaitable[set[int]]],
        locked: Callable[[Sequence[int]], Awaitable[set[int]]] = nothing,
    ) -> None:
        self._finish = finish
        self._locked = locked

    async def finish(self, batch: Sequence[Finished]) -> set[int]:
        return await self._finish(batch)

    async def requeue(self, _batch: Sequence[Requeued]) -> set[int]:
        return set()

    async def repeat(self, _batch: Sequence[Repeated]) -> set[int]:
        return set()

    async def wake_waiting(self, _ids: Sequence[int]) -> None:
        return None

    async def archived_before(self, _batch: Sequence[Finished]) -> set[int]:
        return set()

    async def locked(self, ids: Sequence[int]) -> set[int]:
        return await self._locked(ids)

    async def reasons(self, _ids: Sequence[int]) -> dict[int, str]:
        return {}


async def run(settler: Settler, written: list[Settlement] | None = None) -> None:
    """Write, and note what was written."""

    def note(batch: BatchSettled) -> None:
        if written is not None:
            written.extend(batch.settled)

    await settler.run(note, lambda: None)


async def test_a_surprise_while_writing_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is started again, and what it had in its hands is written then."""
    inside.make_outages_short(monkeypatch, 0.001, 0.001)
    surprises = [KeyError("nobody expected this"), KeyError("nor this")]
    written: list[int] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if surprises:
            raise surprises.pop()
        written.extend(f.claim.id for f in batch)
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    for number in range(3):
        settler.settle(Finished(claim(number), State.COMPLETED))
    task = asyncio.create_task(loops.keep("settler", lambda: run(settler)))
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (written, settler.pending) == ([0, 1, 2], 0)


async def test_of_two_attempts_of_one_job_in_one_batch_one_counts() -> None:
    """A claim that Postgres lost in a crash, and the one that it made then."""
    written: list[Settlement] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    later = replace(claim(0), number=2)
    for each in (later, claim(0), claim(1)):
        settler.settle(Finished(each, State.COMPLETED))
    task = asyncio.create_task(run(settler, written))
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(s.claim.id, s.claim.number) for s in written] == [(0, 2), (1, 1)]
    assert settler.stale == 1


async def test_what_is_written_into_rows_of_attached_tables_holds_up_no_other() -> None:
    """Triggers of such a table may be slow."""
    answers = asyncio.Event()
    written: list[int] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        written.extend(f.claim.id for f in batch)
        return {f.claim.id for f in batch}

    async def finish_slowly(batch: Sequence[Finished]) -> set[int]:
        await answers.wait()
        return await finish(batch)

    settlers = Settlers(Settler(Table(finish)), Settler(Table(finish_slowly)))
    for number in range(4):
        source = None if number % 2 else 1
        settlers.settle(Finished(replace(claim(number), source=source), State.COMPLETED))
    tasks = [asyncio.create_task(run(each)) for each in (settlers.usual, settlers.of_rows)]
    await asyncio.wait_for(settlers.usual.drained(), 120)
    assert (written, settlers.pending) == ([1, 3], 2)
    answers.set()
    await asyncio.wait_for(settlers.drained(), 120)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert written == [1, 3, 0, 2]


async def test_an_outcome_that_postgres_refuses_fails_its_own_job_and_no_other() -> None:
    written: list[Settlement] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if any(f.result == "poison" for f in batch):
            raise EnqueueError("Postgres cannot store this")
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    for number, result in enumerate(["1", "poison", "3"]):
        settler.settle(Finished(claim(number), State.COMPLETED, result=result))
    task = asyncio.create_task(run(settler, written))
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    finished = {s.claim.id: s for s in written if isinstance(s, Finished)}
    assert {number: f.state for number, f in finished.items()} == {
        0: State.COMPLETED,
        1: State.FAILED,
        2: State.COMPLETED,
    }
    assert "Postgres cannot store this" in (finished[1].error or "")


async def test_outcomes_of_rows_that_came_free_are_written_while_others_keep_coming() -> None:
    """There need be no moment without a new outcome."""
    held, written = {0}, list[int]()

    async def finish(batch: Sequence[Finished]) -> set[int]:
        ids = {f.claim.id for f in batch}
        if ids & held:
            raise RowLocked("somebody holds it")
        await asyncio.sleep(0.001)
        written.extend(ids)
        settler.settle(Finished(claim(len(written) + 100), State.COMPLETED))  # one more, each time
        return ids

    async def locked(ids: Sequence[int]) -> set[int]:
        return held & set(ids)

    settler = Settler(Table(finish, locked))
    for number in range(3):
        settler.settle(Finished(claim(number), State.COMPLETED))
    task = asyncio.create_task(run(settler))
    async with asyncio.timeout(120):
        while len(written) < 10:
            await asyncio.sleep(0)
        assert 0 in dict(settler.claims())
        held.clear()
        await until(lambda: written, has(0))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_is_isolated_is_not_forgotten_meanwhile() -> None:
    """A claim whose answer was lost asks what there is here: what is not named goes back and runs
    again.
    """
    away, asked = asyncio.Event(), asyncio.Event()

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if any(f.result == "poison" for f in batch):
            raise EnqueueError("Postgres cannot store this")
        if batch[0].claim.id == 0:
            raise RowLocked("somebody holds it")
        asked.set()
        await away.wait()
        return {f.claim.id for f in batch}

    async def locked(ids: Sequence[int]) -> set[int]:
        return {0} & set(ids)

    settler = Settler(Table(finish, locked))
    for number, result in enumerate(["0", "1", "2", "poison"]):
        settler.settle(Finished(claim(number), State.COMPLETED, result=result))
    task = asyncio.create_task(run(settler))
    await asyncio.wait_for(asked.wait(), 120)
    assert set(dict(settler.claims())) == {0, 1, 2, 3}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("refused", "most"), [({77}, 22), ({0, 99, 250, 499}, 75), (set(range(500)), 60)], ids=str
)
async def test_what_is_refused_is_found_in_few_statements(
    refused: set[int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of five hundred, some, and all: a right may be missing."""
    inside.make_refusals_short(monkeypatch, 600, 600)  # none is tried again while others are found
    asked, written = 0, list[int]()

    async def finish(batch: Sequence[Finished]) -> set[int]:
        nonlocal asked
        asked += 1
        ids = {f.claim.id for f in batch}
        if ids & refused:
            raise DatabaseError("not this one")
        written.extend(ids)
        return ids

    settler = Settler(Table(finish))
    for number in range(500):
        settler.settle(Finished(claim(number), State.COMPLETED))
    task = asyncio.create_task(run(settler))
    await until(lambda: len(written) + settler.refused, equals(500))
    assert asked <= most
    assert set(dict(settler.claims())) == refused
    assert sorted(written) == sorted(set(range(500)) - refused)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_waits_for_a_lock_is_asked_about_after_the_loop_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handler that cancels all tasks may do so at that moment, and no outcome may follow."""
    monkeypatch.setattr("hybrid_runner.worker.settle.set_aside.LOCKED_PAUSE", 0.01)
    held, asked, written = {0}, asyncio.Event(), list[int]()
    questions = 0

    async def finish(batch: Sequence[Finished]) -> set[int]:
        ids = {f.claim.id for f in batch}
        if ids & held:
            raise RowLocked("somebody holds it")
        written.extend(ids)
        return ids

    async def locked(ids: Sequence[int]) -> set[int]:
        nonlocal questions
        questions += 1
        if questions == 2:  # the first one is about the batch that was refused
            asked.set()
            await asyncio.Event().wait()
        return held & set(ids)

    settler = Settler(Table(finish, locked))
    settler.settle(Finished(claim(0), State.COMPLETED))
    task = asyncio.create_task(run(settler))
    await asyncio.wait_for(asked.wait(), 120)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    held.clear()
    task = asyncio.create_task(run(settler))  # as it is started again
    await until(lambda: written, equals([0]))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
