"""Claims jobs of one queue for this worker, and releases those whose claim got no answer."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim, ClaimResult
from hybrid_runner.model.settlements import Requeued, Settlement
from hybrid_runner.policy.reach import Reach
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.claim_calls import WHOLE_LANES, Lanes
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.queue.claimable import Claimable, Executors
from hybrid_runner.worker.queue.unclaimable import Question, Unclaimable

log = logging.getLogger("hybrid_runner.worker")

LANES = 10
_MOST_ABORTS = 2
"""So often in a row Postgres may give up a claim before the jobs are claimed one by one."""
_HELD_PAUSE = 1.0
"""Seconds until a job is released of which nobody could tell whether it may begin."""
_ASKING = 0.3
"""Seconds for which a look asks of its jobs whether they may begin: each that somebody holds costs
a wait.
"""
_LOCKED_PAUSE = 5.0
"""Seconds until the next try to release a job whose row was locked."""


class InHand(NamedTuple):
    """What this worker has claimed."""

    claims: Callable[[], Sequence[tuple[int, int]]]
    """Ids and claims of the jobs that it runs, or whose outcomes it has not written yet."""
    settle: Callable[[Settlement], None]


class Claims:
    """The `ClaimPort` of a real database: one statement at a time."""

    def __init__(
        self,
        queue: str,
        connection: LazyConnection,
        claimable: Claimable,
        identity: Identity,
        margin: timedelta,
        ask_for_heartbeat: Callable[[], None],
        in_hand: InHand,
        unclaimable: Unclaimable,
    ) -> None:
        self._queue = queue
        self._connection = connection
        self._claimable = claimable
        self._identity = identity
        # One for each choice of kinds: an empty lane says nothing of kinds that were left out.
        self._frontiers = defaultdict[Executors, Frontier](lambda: Frontier(margin))
        self._ask_for_heartbeat = ask_for_heartbeat
        self._in_hand = in_hand
        self._unclaimable = unclaimable
        self._generation = 1
        self._aborts = 0
        self._claim_unanswered = self._unstarted = False
        self._try_again_at = math.inf
        self.took = 0.0

    async def claim(self, slots: int, *, sweep: bool) -> list[Claim] | None:
        """Claim up to so many due jobs; None: the worker stops, and the database was not asked.

        A sweep reads the lanes from their start, any other look from the frontier.
        """
        until = time.monotonic() + _ASKING
        while claims := await self._claim_due(slots, sweep=sweep):
            if not any(claim.key and claim.key[0] == ">" for claim in claims):
                break
            # If none of them may begin, others may be due behind them.
            if claims := await self._begin_successors(claims, until):
                break
        return claims

    async def _begin_successors(self, claims: list[Claim], until: float) -> list[Claim]:
        """Without those that still wait for another job's key, or of whom nobody asked until then,
        by the monotonic clock.
        """
        self._claim_unanswered = True
        began = list[Claim]()
        for claim in claims:
            if claim.key and claim.key[0] == ">":
                key: str | None = ""
                if time.monotonic() < until:
                    key = await claim_calls.begin_successor(self._connection, claim)
                if key == "":  # somebody holds it: released later, if that comes to nothing
                    self._try_again_at = min(self._try_again_at, time.monotonic() + _HELD_PAUSE)
                if not key:
                    continue
                claim.key = key
            began.append(claim)
        self._claim_unanswered = False
        return began

    async def _claim_due(self, slots: int, *, sweep: bool) -> list[Claim] | None:
        given = await self._identity.next_claim(self._ask_for_heartbeat)
        if given is None:
            return None
        worker_id, number = given
        excluded = self._claimable.excluded()
        kinds, frontier = self._claimable.kinds(excluded), self._frontiers[excluded]
        asked = Question(self._queue, kinds, slots, worker_id, number, frontier.lanes(sweep=sweep))
        self._claim_unanswered = self._unstarted = True
        try:
            result, others = await self._unclaimable.claim(asked), list[Claim]()
            self._claim_unanswered, self._aborts = False, 0
        except RunnerError as error:
            fault = fault_of(error)
            self._aborts += fault is Fault.STATEMENT
            if fault is Fault.OUTAGE or (fault is Fault.STATEMENT and self._aborts < _MOST_ABORTS):
                raise
            await self.reconcile()  # if only its answer could not be read, they have been claimed
            result, others = await self._unclaimable.claim_others(asked, error)
            self._claim_unanswered = True  # so may the answer to one of these have been
        self.took = self._connection.took
        if not self._identity.still(worker_id):
            for claim in (*others, *result.claims):  # under an id that was declared dead
                self._in_hand.settle(Requeued(claim, timedelta(0), charged=False, why="release"))
            result, others = ClaimResult([], result.looked_at), []
        left = slots - len(others)
        frontier.moved_by(result, left)
        if result.looked_at is not None and len(result.claims) < left:
            self._claimable.found_all(excluded)
        return [*others, *result.claims] if others else result.claims

    def started(self) -> None:
        """What `claim` returned runs. Until this is said, `reconcile` may have to release it."""
        self._unstarted = False

    async def next_due(self) -> timedelta | None:
        """How long until the next job of the queue is due; None if no job waits for its time."""
        return await claim_calls.next_due(self._connection, self._queue)

    async def reconcile(self) -> None:
        """Release jobs that Postgres shows as running here and that do not.

        Needed after a claim whose answer was lost, and on every new connection: after a failover
        the server may not know an outcome that the old one took. Never call it beside a claim.
        """
        is_new = self._connection.generation != self._generation
        is_in_doubt = self._claim_unanswered or self._unstarted
        if not (is_new or is_in_doubt or time.monotonic() >= self._try_again_at):
            return
        released = await self._release_lost()
        for job_id in (job_id for job_id, done in released.items() if done):
            log.warning(
                "released: marked running on this worker, but no handler has it",
                extra=log_event("job.released", job=job_id),
            )
        self._claim_unanswered = self._unstarted = False
        self._generation = self._connection.generation
        self._try_again_at = (
            math.inf if all(released.values()) else time.monotonic() + _LOCKED_PAUSE
        )

    def refused(self) -> tuple[int, tuple[str, ...]]:
        """How many jobs, and which kinds, are left out because Postgres refuses their claims."""
        return self._unclaimable.jobs, self._unclaimable.kinds

    async def _release_lost(self) -> dict[int, bool]:
        asked = self._connection, self._queue, self._identity.id, self._in_hand.claims()
        try:
            return await claim_calls.release_lost(*asked)
        except RunnerError as error:
            if fault_of(error) is Fault.OUTAGE:
                raise
            released = dict.fromkeys(await claim_calls.find_unanswered(*asked), False)
            if not released:
                raise
        for job_id in released:
            try:
                released |= await claim_calls.release_lost(*asked, [job_id])
            except RunnerError as error:
                if fault_of(error) is Fault.OUTAGE:
                    raise
                log.warning(
                    "marked running on this worker, but no handler has it, and Postgres refuses to"
                    " put it back: %s",
                    error,
                    extra=log_event("job.release_refused", job=job_id),
                )
        return released


class Frontier:
    """How far this worker has looked in each lane, so that looks need not pass over what is gone.

    Claimed jobs and empty lanes move it, but never closer than `margin` to the look's time, and
    further off while few jobs come: that leaves room for transactions which commit late with an
    earlier run_at. Sweeps find older ones.
    """

    def __init__(self, margin: timedelta) -> None:
        self._reach = Reach(margin)
        self._run_ats, self._ids = list(WHOLE_LANES[0]), list(WHOLE_LANES[1])

    def lanes(self, *, sweep: bool) -> Lanes:
        """Where the next look starts."""
        return WHOLE_LANES if sweep else (self._run_ats, self._ids)

    def moved_by(self, result: ClaimResult, asked: int) -> None:
        """Move it by what a look found; back, if a sweep found older jobs.

        Lanes before the last one that gave a job are empty; all are if fewer came than asked for.
        """
        if result.looked_at is None:
            return
        if result.claims:
            newest = result.claims[-1].id
            self._reach.found(len(result.claims), newest, result.looked_at)
        limit = self._reach.back_to(result.looked_at)
        if len(result.claims) < asked:
            self._run_ats, self._ids = [limit] * LANES, [0] * LANES
            return
        last = result.claims[-1]
        for lane in range(last.priority):
            self._run_ats[lane], self._ids[lane] = limit, 0
        self._run_ats[last.priority], self._ids[last.priority] = min(
            (last.run_at, last.id), (limit, 0)
        )
