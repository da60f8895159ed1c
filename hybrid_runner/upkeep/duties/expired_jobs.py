"""Ends jobs that wait although their time is over, of kinds that no live worker knows.

A worker that knows a kind ends its jobs itself, at their next look.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.jsontext import decode
from hybrid_runner.model.kinds import ExpiredJob
from hybrid_runner.model.outcomes import Snooze
from hybrid_runner.model.settlements import Finished
from hybrid_runner.policy.rules import Rules
from hybrid_runner.policy.settlement import decide
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS, FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

PAST = timedelta(minutes=1)
"""How long the time of a job must have been over: a worker that knows it may be about to start."""
_KINDS = 1000
_ROWS = 1000
"""So many jobs are read at a time, and ended in one transaction."""
_LOOKS = 100
"""Looks of one run; where it ended is remembered."""
_LAST = 0.1
"""What a look counts that came to the end of a kind: there may be a thousand with a job each."""
_MOST_LINES = 10


class EndExpiredJobs(Duty):
    """Any number of workers may do this at once: each job is ended once."""

    name = "expired_jobs"
    every = timedelta(minutes=1)
    # Its looks have one good plan whatever the table holds, as claims do.
    session = named("expired_jobs", FOR_CLAIMS | FOR_UPKEEP)

    def __init__(self, past: timedelta = PAST, rows: int = _ROWS, looks: int = _LOOKS) -> None:
        self._past = past
        self._rows = rows
        self._looks = looks
        self._ended = Counter(table.EXPIRED_JOBS)
        self._behind: dict[str, int] = {}
        """Of kinds whose jobs were not all read: behind which one to go on."""
        self._last = ""
        """The kind of the last look: the next run goes on behind it, since whoever may insert can
        make up more kinds than one run can look at.
        """

    def metric_values(self) -> MetricValues:
        """How many jobs this worker has ended. May be called from any thread."""
        return {table.EXPIRED_JOBS.name: self._ended.read()}

    async def run(self, connection: Fetches) -> None:
        """Look at the waiting jobs of all kinds that no live worker knows."""
        kinds = await kind_calls.find_expired_kinds(connection, _KINDS, self._last)
        if len(kinds) < _KINDS:  # on from the beginning, to where this run began
            first = await kind_calls.find_expired_kinds(connection, _KINDS)
            kinds += [kind for kind in first if kind not in kinds][: _KINDS - len(kinds)]
        if len(kinds) < _KINDS:
            self._behind = {kind: at for kind, at in self._behind.items() if kind in kinds}
        turns, spent = deque(kinds), 0.0
        while turns and spent < self._looks:
            kind = self._last = turns.popleft()
            found = await kind_calls.find_expired(
                connection, kind, self._behind.pop(kind, 0), self._past, self._rows
            )
            if found.jobs:
                await self._end(connection, found.jobs)
            if found.last_id is None:
                spent += _LAST
            else:
                spent += 1
                self._behind[kind] = found.last_id
                turns.append(kind)

    async def _end(self, on: Fetches, jobs: Sequence[ExpiredJob]) -> None:
        """One job that Postgres refuses to move does not hold up the others."""
        ends = [(job, end) for job in jobs if (end := _end_of(job)) is not None]
        try:
            moved = await kind_calls.end_expired(on, [(job, end.error or "") for job, end in ends])
        except RunnerError as error:
            if isinstance(error, DatabaseUnavailable):
                raise
            if len(jobs) > 1:
                for job in jobs:
                    await self._end(on, [job])
                return
            log.warning(
                "a job whose time is over cannot be ended: %s",
                error,
                extra=job_fields(jobs[0].claim, "job.expired"),
            )
            return
        self._report([end for _, end in ends if end.claim.id in moved])

    def _report(self, ended: Sequence[Finished]) -> None:
        for end in ended:
            self._ended.add((end.claim.queue,))
        for end in ended[:_MOST_LINES]:
            log.error(
                "%s has failed: its time is over, and no live worker knows its kind: %s",
                end.claim.kind,
                _reason(end),
                extra=job_fields(end.claim, "job.expired"),
            )
        if len(ended) > _MOST_LINES:
            log.error(
                "%d more jobs have failed: their time is over, and no live worker knows them",
                len(ended) - _MOST_LINES,
                extra=log_event("job.expired"),
            )


def _reason(end: Finished) -> str:
    entry = decode(end.error)
    return f"{entry['type']}: {entry['message']}"


def _end_of(job: ExpiredJob) -> Finished | None:
    """What a worker would have made of it, had its handler asked for more time."""
    why = "no live worker knows its kind"
    said = Snooze(reason=f"{job.reason}; {why}" if job.reason else why)
    end = decide(job.claim, said, Rules(), now=job.found_at, chance=0.0)
    return end if isinstance(end, Finished) else None
