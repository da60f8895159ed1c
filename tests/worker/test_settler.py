"""The settler alone: what Postgres refuses must not hold up, or take along, what it would take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from hybrid_runner.errors import EnqueueError
from hybrid_runner.models import Claim, State
from hybrid_runner.outcomes import Finished, Requeued, Settlement
from hybrid_runner.worker.settler import Settler


def claim(number: int) -> Claim:
    """The claim of one job."""
    now = datetime.now(UTC)
    return Claim(number, "default", "work", 5, "{}", None, None, now, 5, None, None, None, 1, 1, now)


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
