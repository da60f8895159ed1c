"""Due jobs that Postgres refuses to hand out: one of them must not keep the others of its batch.

Why it is refused decides what becomes of it. If its row is at fault, it has failed, and is counted,
logged and reported like any other. Otherwise (a trigger of somebody's raises, perhaps) it stays
queued, and this worker leaves it out for a while; a kind of which many are refused as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim, ClaimResult
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.policy.settlement import error_text
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.claim_calls import Kinds, Lanes
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.worker.run.payloads import Payloads

log = logging.getLogger("hybrid_runner.worker")

PAUSE = timedelta(minutes=1)
"""For how long a job, or a kind, that was refused is left out: at least."""
_TIMES = 10
"""And at least for so many times as long as it took to find out."""
_MANY = 20
"""If so many jobs of a kind are refused and none is taken, the kind is left out."""
_MOST = 1000
"""So many jobs are left out at most; beyond that, the oldest are tried again."""
_MOST_LINES = 10
"""So many of one look's refused jobs get a log line of their own."""
_LONGEST = 10.0
"""Seconds after which one round finds out about no more jobs: each may take a time-out."""
_ROUNDS = 3
"""So often one look tries to get past refused jobs."""


class Question(NamedTuple):
    """What a look asks for."""

    queue: str
    kinds: Kinds
    slots: int
    worker_id: str
    number: int
    lanes: Lanes


class Unclaimable:
    """What of one queue this worker does not ask for, because it was refused."""

    def __init__(
        self,
        connection: LazyConnection,
        on_ended: Callable[[BatchSettled], None],
        look_again: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._on_ended = on_ended
        self._look_again = look_again
        self._jobs: dict[int, float] = {}  # until when, by the monotonic clock
        self._kinds: dict[str, float] = {}

    @property
    def jobs(self) -> int:
        """How many jobs are left out now, beside those of kinds that are."""
        return sum(until > time.monotonic() for until in self._jobs.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that are left out now."""
        return tuple(kind for kind, until in self._kinds.items() if until > time.monotonic())

    async def claim(self, asked: Question) -> ClaimResult:
        """Claim all but what is left out."""
        if self._jobs or self._kinds:
            asked = self._narrowed(asked)
        result = await claim_calls.claim_jobs(
            self._connection, *asked, [*self._jobs], Payloads.most_bytes(asked.slots)
        )
        # Not from before the call: it may have waited for its turn, or for a new connection.
        asked_at = time.monotonic() - self._connection.took
        for claim in result.claims:
            claim.asked_at = asked_at
        return result

    async def claim_others(
        self, asked: Question, error: RunnerError
    ) -> tuple[ClaimResult, list[Claim]]:
        """After a refused claim: the answer to one that leaves out what caused it, and the jobs
        that were claimed one by one on the way.

        Raises what the claim raised if that was not because of any job.
        """
        claims = list[Claim]()
        for _ in range(_ROUNDS):
            try:
                claims += await self._one_by_one(
                    asked._replace(slots=asked.slots - len(claims)), error
                )
                if len(claims) == asked.slots:
                    return ClaimResult([], None), claims
                left = asked._replace(slots=asked.slots - len(claims))
                return await self.claim(left), claims
            except RunnerError as failure:
                if fault_of(failure) is Fault.OUTAGE and not claims:
                    raise
                error = failure
        if not (claims or self._jobs or self._kinds):
            raise error
        self._look_again()  # there may be more behind them
        return ClaimResult([], None), claims

    def _narrowed(self, asked: Question) -> Question:
        now = time.monotonic()
        self._jobs = {job: until for job, until in self._jobs.items() if until > now}
        self._kinds = {kind: until for kind, until in self._kinds.items() if until > now}
        return asked._replace(kinds=asked.kinds.without(self._kinds))

    async def _one_by_one(self, asked: Question, error: RunnerError) -> list[Claim]:
        asked, began = self._narrowed(asked), time.monotonic()
        claims, refused = list[Claim](), list[tuple[Claim, RunnerError]]()
        for one in await self._due(asked, error):
            one.number = asked.number
            try:
                claim = await claim_calls.claim_job(
                    self._connection, one, asked.kinds, asked.worker_id, asked.number
                )
            except RunnerError as failure:
                if fault_of(failure) is not Fault.OUTAGE:
                    refused.append((one, failure))
                    if time.monotonic() - began > _LONGEST:
                        break
                elif claims:  # those are this worker's: the next statement meets the outage
                    break
                else:
                    raise
            else:
                if claim is not None:
                    claim.asked_at = time.monotonic() - self._connection.took
                    claims.append(claim)
        left = [each for each in refused if not await self._end(*each)]
        if left:
            pause = max(PAUSE.total_seconds(), _TIMES * (time.monotonic() - began))
            self._leave_out(left, {claim.kind for claim in claims}, pause)
            asyncio.get_running_loop().call_later(pause, self._look_again)
        return claims

    async def _due(self, asked: Question, error: RunnerError) -> list[Claim]:
        try:
            # Of no job at all: if that is refused too, none is to blame.
            await claim_calls.claim_jobs(self._connection, *asked._replace(slots=0))
            due = await claim_calls.find_due(
                self._connection, asked.queue, asked.kinds, asked.slots, asked.lanes, [*self._jobs]
            )
        except RunnerError:
            raise error from None
        if not due:
            raise error
        return due

    async def _end(self, job: Claim, refusal: RunnerError) -> bool:
        """If its row is at fault, the job has failed; False if it is not, or that is refused."""
        fault = fault_of(refusal)
        if fault not in (Fault.UNFIT_ROW, Fault.UNREADABLE_ROW):
            return False
        reason = f"it could not be claimed: {refusal}"
        error = error_text(job, datetime.now(UTC), "PayloadUnreadable", reason)
        began = time.monotonic()
        try:
            moved = await claim_calls.refuse_job(
                self._connection, job, error, unreadable=fault is Fault.UNREADABLE_ROW
            )
        except RunnerError:
            return False
        if moved:
            ended = [Finished(job, State.FAILED, error=error)]
            self._on_ended(BatchSettled(ended, [], began, time.monotonic()))
        return True

    def _leave_out(
        self, refused: Sequence[tuple[Claim, RunnerError]], taken: set[str], seconds: float
    ) -> None:
        until = time.monotonic() + seconds
        counts = Counter(job.kind for job, _ in refused if job.kind not in taken)
        kinds = {kind for kind, count in counts.items() if count >= _MANY}
        told = 0
        for job, refusal in refused:
            if job.kind not in kinds:
                self._jobs[job.id] = until
                if (told := told + 1) <= _MOST_LINES:
                    log.warning(
                        "Postgres refuses its claim, it is left out for %d s: %s",
                        seconds,
                        refusal,
                        extra=job_fields(job, "job.claim_refused"),
                    )
            elif self._kinds.get(job.kind) != until:
                self._kinds[job.kind] = until
                log.warning(
                    "%s: Postgres refuses claims of %s, such jobs are left out for %d s: %s",
                    job.queue,
                    job.kind,
                    seconds,
                    refusal,
                    extra=log_event("queue.kind_refused", queue=job.queue, kind=job.kind),
                )
        for job_id in [*self._jobs][: max(0, len(self._jobs) - _MOST)]:
            del self._jobs[job_id]
