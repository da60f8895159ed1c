"""The settler alone: what Postgres refuses must not hold up, or take along, what it would take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.errors import EnqueueError
from hybrid_runner.models import Claim, State
from hybrid_runner.outcomes import Finished, Requeued, Settlement
from hybrid_runner.policy.pace import Pace
from hybrid_runner.worker import loops
from hybrid_runner.worker.settler import Settler


def claim(number: int) -> Claim:
    """The claim of one job."""
    now = datetime.now(UTC)
    return Claim(number, "default", "work", 5, "{}", None, None, now, 5, None, None, None, 1, 1, now)


async def test_a_surprise_while_writing_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is started again, and what it had in its hands is written then."""
    monkeypatch.setattr(loops, "OUTAGE", Pace(timedelta(milliseconds=1), timedelta(milliseconds=1), 1))
    surprises = [KeyError("nobody expected this"), KeyError("nor this")]
    written: list[int] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if surprises:
            raise surprises.pop()
        written.extend(f.claim.id for f in batch)
        return {f.claim.id for f in batch}

    async def none(_batch: Sequence[Requeued] | Sequence[Finished] | Sequence[int]) -> set[int]:
        return set()

    settler = Settler(finish, requeue=none, archived_before=none, locked=none, settled=lambda _: None, written=lambda: None)
    for number in range(3):
        settler.settle(Finished(claim(number), State.COMPLETED))
    task = asyncio.create_task(loops.keep("settler", settler.run))
    await asyncio.wait_for(settler.drained(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (written, settler.pending) == ([0, 1, 2], 0)


async def test_an_outcome_that_postgres_refuses_fails_its_own_job_and_no_other() -> None:
    told: list[Settlement] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if any(f.result == "poison" for f in batch):
            raise EnqueueError("Postgres cannot store this")
        return {f.claim.id for f in batch}

    async def none(_batch: Sequence[Requeued] | Sequence[Finished] | Sequence[int]) -> set[int]:
        return set()

    settler = Settler(finish=finish, requeue=none, archived_before=none, locked=none, settled=told.append, written=lambda: None)
    for number, result in enumerate(["1", "poison", "3"]):
        settler.settle(Finished(claim(number), State.COMPLETED, result=result))
    task = asyncio.create_task(settler.run())
    await asyncio.wait_for(settler.drained(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    finished = {s.claim.id: s for s in told if isinstance(s, Finished)}
    assert {number: f.state for number, f in finished.items()} == {0: State.COMPLETED, 1: State.FAILED, 2: State.COMPLETED}
    assert "Postgres cannot store this" in (finished[1].error or "")
