"""What holds whatever happened. Pure: records in, sentences about what is wrong out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.behaviour.rows.records import Ended, Records
from tests.behaviour.rows.table import APPLICATION, FINAL, OF_THE_APPLICATION, WORDS

NOT_BY_A_RUN = ("WorkerLost", "TimeoutError")
"""Errors that end a job without its handler."""


def check(records: Records) -> list[str]:
    """Every law on every row."""
    laws = (
        left_over,
        shown_otherwise,
        want_lost,
        done_unseen,
        ended_twice,
        final_word_overwritten,
        ran_twice,
        miscounted,
        deadlocked,
    )
    return [
        f"{law.__name__}: {what}{_tale(records, what)}" for law in laws for what in law(records)
    ]


def _tale(records: Records, what: str) -> str:
    """What else is known of the row that a sentence begins with."""
    if not (found := re.match(r"row (\d+)", what)):
        return ""
    row = int(found[1])
    words = [f"{each.became} by {each.by}" for each in records.changes if each.row == row]
    ends = [
        f"{job.id} {job.state} at attempt {job.attempt} {job.last_error}"
        + (", retried" if job.id in records.retried else "")
        for job in sorted(records.ended, key=lambda job: job.at)
        if job.row == row
    ]
    runs = [f"{run.id} saw want {run.wants}, {run.how}" for run in records.seen if run.row == row]
    return f" (it became: {words}; jobs: {ends}; runs: {runs})"


def left_over(records: Records) -> Iterator[str]:
    """When all is quiet no row waits or runs, none is late, and no job is live."""
    for row in records.rows:
        if row.status not in FINAL and row.status not in OF_THE_APPLICATION:
            yield f"row {row.id} ({row.how}, wanted {row.wants} times) still shows {row.status}"
    for key, why in records.late:
        yield f"row {key} is still late: {why}"
    for job_id, key, what in records.left:
        yield f"job {job_id} of row {key} is still live: {what}"


def shown_otherwise(records: Records) -> Iterator[str]:
    """A row shows how its last job ended, or what the application has said last."""
    last, said_by = _last_ends(records), {each.row: each for each in records.changes}
    for row in records.rows:
        change = said_by[row.id]
        if change.became != row.status:
            yield f"row {row.id} shows {row.status}, and the last that was noted is {change}"
        if change.by == APPLICATION:
            continue
        job = last.get(row.id)
        if job is None:
            yield f"row {row.id} shows {row.status}, and no job of its has ended"
        elif job.id in records.retried:
            # Retried while somebody held the row, and changed it: it keeps what it shows.
            continue
        elif WORDS[job.state] != row.status:
            yield f"row {row.id} shows {row.status}, and its last job {job.id} ended {job.state}"
        elif job.state == "completed" and row.result != job.result:
            yield f"row {row.id} has result {row.result}, its last job {job.id} {job.result}"
        else:
            yield from _incomplete(records, row.id, job)


def _incomplete(records: Records, row_id: int, job: Ended) -> Iterator[str]:
    [row] = [row for row in records.rows if row.id == row_id]
    if not row.is_finished:
        yield f"row {row_id} shows {row.status} and no time at which it ended"
    if (row.error is not None) != (job.state == "failed") and job.state != "cancelled":
        yield f"row {row_id} shows {row.status} with error {row.error!r}"


def want_lost(records: Records) -> Iterator[str]:
    """The run that ended a row's last job has seen the last time that it was wanted."""
    last = _last_ends(records)
    runs = {(run.id, run.claim): run for run in records.seen}
    last_by = {each.row: each.by for each in records.changes}
    for row in records.rows:
        job = last.get(row.id)
        if job is None or job.id in records.retried or last_by[row.id] == APPLICATION:
            continue
        if job.state == "cancelled" or (job.state == "failed" and job.last_error in NOT_BY_A_RUN):
            continue
        run = runs.get((job.id, job.claim or 0))
        if run is None:
            yield f"row {row.id} shows {row.status} by job {job.id}, which never ran so"
        elif run.wants != row.wants:
            yield (
                f"row {row.id} was wanted {row.wants} times; its last run, of job {job.id}, saw"
                f" {run.wants}"
            )


def done_unseen(records: Records) -> Iterator[str]:
    """Whenever a row becomes done, some run has seen it wanted as often as it was by then."""
    saw = {(run.row, run.wants) for run in records.seen}
    for change in records.changes:
        is_ours = change.by != APPLICATION and change.became == WORDS["completed"]
        if is_ours and (change.row, change.wants) not in saw:
            yield f"row {change.row} was done when it was wanted {change.wants} times, unseen"


def ended_twice(records: Records) -> Iterator[str]:
    for job_id, times in Counter(job.id for job in records.ended).items():
        if times > 1:
            yield f"job {job_id} is in the archive {times} times"


def final_word_overwritten(records: Records) -> Iterator[str]:
    """A row whose work has ended keeps its word until the application wants it again, or somebody
    retries its job.
    """
    may_be_retried = {job.row for job in records.ended if job.id in records.retried}
    for change in records.changes:
        if change.by == APPLICATION or change.was not in (*FINAL, "draft"):
            continue
        if change.row in may_be_retried:
            continue
        yield f"row {change.row} showed {change.was}, and {change.by} wrote {change.became}"


def ran_twice(records: Records) -> Iterator[str]:
    for (job_id, claim), times in Counter((run.id, run.claim) for run in records.seen).items():
        if times > 1:
            yield f"claim {claim} of job {job_id} ran {times} times"


def miscounted(records: Records) -> Iterator[str]:
    """A row counts the attempts that ended badly."""
    last, last_by = _last_ends(records), {each.row: each.by for each in records.changes}
    for row in records.rows:
        job = last.get(row.id)
        if job is None or job.id in records.retried or last_by[row.id] == APPLICATION:
            continue
        if job.state == "cancelled":
            continue
        bad = job.attempt - (job.state == "completed")
        if row.retries != bad:
            yield f"row {row.id} ({row.status}) counts {row.retries} retries, job {job.id} {bad}"


def deadlocked(records: Records) -> Iterator[str]:
    """The application locks its rows in order, and workers never wait for one."""
    yield from records.deadlocks


def _last_ends(records: Records) -> dict[int, Ended]:
    """By row. Ids of jobs go up; one that was retried ends again after younger ones."""
    if records.retried:
        return {job.row: job for job in sorted(records.ended, key=lambda job: (job.at, job.id))}
    return {job.row: job for job in sorted(records.ended, key=lambda job: job.id)}
