from contextlib import AsyncExitStack
from datetime import timedelta
import pytest
from hybrid_runner.storage import statements
from hybrid_runner.worker.frontier import Frontier, LANES
from tests.storage import test_frontier_claims as t

class NoMarginLast(Frontier):
    def moved_by(self, taken, asked):
        super().moved_by(taken, asked)
        if len(taken.claims) == asked:
            last = taken.claims[-1]
            self._run_ats[last.priority], self._ids[last.priority] = last.run_at, last.id

class NoMargin(Frontier):
    def __init__(self, margin): super().__init__(timedelta(0))

class AllLanes(Frontier):
    def moved_by(self, taken, asked):
        super().moved_by(taken, asked)
        if taken.claims:
            for lane in range(LANES): self._run_ats[lane], self._ids[lane] = taken.at - self._margin, 0

class LanesUpToLast(Frontier):
    def moved_by(self, taken, asked):
        super().moved_by(taken, asked)
        if taken.claims and len(taken.claims)==asked:
            self._run_ats[taken.claims[-1].priority] = taken.at - self._margin

class Kept(t.Machine):
    async def requeue(self, connection, batch):
        back = await super().requeue(connection, batch)
        for r in batch:
            if r.claim.id in back:
                await connection.execute("UPDATE hybrid_runner.jobs SET run_at = $2 WHERE id = $1", r.claim.id, r.claim.run_at)
        return back

class SweepFromFrontier(Frontier):
    def lanes(self, *, sweep): return super().lanes(sweep=False)

async def release_kept(on, queue, worker, known):
    rows = await on.fetch("UPDATE hybrid_runner.jobs SET state='queued', claim=NULL, worker_id=NULL WHERE queue=$1 AND worker_id=$2 AND state='running' AND NOT id = ANY($3) RETURNING id", queue, worker, known)
    return {r[0] for r in rows}

@pytest.mark.parametrize("sweeps", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("broken", [None, NoMarginLast, NoMargin, AllLanes, LanesUpToLast, SweepFromFrontier, Kept, "release"], ids=str)
async def test_scratch(seed, sweeps, dsn, broken, monkeypatch):
    if broken == "release": monkeypatch.setattr(statements, "release_lost", release_kept)
    if isinstance(broken, type) and issubclass(broken, Frontier): monkeypatch.setattr(t, "Frontier", broken)
    if broken is Kept: monkeypatch.setattr(t, "Machine", Kept)
    async with AsyncExitStack() as stack:
        m = await t.machine(dsn, stack, seed)
        await m.run(sweeps=sweeps)
    print("STAT", m.found, m.passed_over, m.came_late)
