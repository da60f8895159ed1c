"""Jobs as people read them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.cli.history import print_history
from hybrid_runner.cli.output import (
    STATE_COLOURS,
    ago,
    as_text,
    counted,
    in_colour,
    paint,
    print_table,
    span,
)
from hybrid_runner.display import harmless, moment_text, one_line
from hybrid_runner.model.jobs import JobSummary, JobView, State

_LONGEST_KEY = 40
"""Characters of a row's key in a list."""
_PRINTED_BELOW = ("history", "errors", "unreadable")
_LIST = ("ID", "STATE", "QUEUE", "KIND", "ROW", "ATTEMPT", "WHEN", "NOTE")


def print_jobs(jobs: Sequence[JobSummary]) -> None:
    """Print one line for each job."""
    if not jobs:
        print("no jobs")
        return
    rows: list[tuple[str, ...]] = [
        (
            str(job.id),
            job.state.value,
            job.queue,
            job.kind,
            _row(job),
            _attempts(job),
            _when(job),
            one_line(_note(job)),
        )
        for job in jobs
    ]
    headers: tuple[str, ...] = _LIST
    if not any(job.source for job in jobs):
        row = _LIST.index("ROW")
        headers = headers[:row] + headers[row + 1 :]
        rows = [each[:row] + each[row + 1 :] for each in rows]
    print_table(headers, rows, [STATE_COLOURS[job.state] for job in jobs])


def print_job(job: JobView) -> None:
    """Print each column that is not empty on its own line, then its runs, then the error of each
    attempt.
    """
    coloured = in_colour(sys.stdout)
    names = [field.name for field in fields(job) if field.name not in _PRINTED_BELOW]
    width = max(map(len, names))
    for name in names:
        value = getattr(job, name)
        if value is None:
            continue
        text = one_line(_shown(name, value))
        shown = paint(text, STATE_COLOURS[job.state], on=coloured) if name == "state" else text
        print(f"{paint(name.ljust(width), 'dim', on=coloured)}  {shown}")
    for name, why in job.unreadable.items():
        print(f"{paint(name.ljust(width), 'dim', on=coloured)}  cannot be read: {one_line(why)}")
    print_history(job)
    for error in _errors(job):
        _print_error(error, coloured=coloured)


def _print_error(error: Any, *, coloured: bool) -> None:
    if not isinstance(error, dict):
        print(f"\n{as_text(error)}")
        return
    head = f"attempt {error.get('attempt')} at {error.get('at')}"
    what = f"{error.get('type')}: {error.get('message')}"
    print(
        f"\n{paint(one_line(head), 'dim', on=coloured)} "
        f" {paint(one_line(what), 'red', on=coloured)}"
    )
    for line in _lines(error.get("traceback")):
        print(f"    {line}")


def _lines(text: object) -> Iterator[str]:
    if text:
        yield from (harmless(line) for line in str(text).rstrip().splitlines())


def _shown(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        text = moment_text(value, local=True)
        return text if text == "never" else f"{text} ({ago(value)})"
    if isinstance(value, timedelta):
        return span(value)
    if name == "behind":
        return f"job {value}, which has its key"
    if name in ("payload", "data", "progress", "result"):
        return as_text(value)
    return str(value)


def _row(job: JobSummary) -> str:
    """Of which attached table it is about which row."""
    if job.source is None:
        return ""
    return one_line(
        f"{job.table_name or f'source {job.source}'} {(job.row_key or '')[:_LONGEST_KEY]}"
    )


def _attempts(job: JobSummary) -> str:
    attempts = f"{job.attempt}/{job.max_attempts}" if job.max_attempts else str(job.attempt)
    return f"{attempts}, {counted(job.snoozes, 'snooze')}" if job.snoozes else attempts


def _when(job: JobSummary) -> str:
    if job.behind is not None:  # also while a worker asks whether it may begin
        return f"after job {job.behind}"
    match job.state:
        case State.QUEUED:
            return f"due {ago(job.run_at)}"
        case State.RUNNING:
            return f"started {ago(job.started_at)}"
        case _:
            return f"ended {ago(job.finished_at)}"


def _note(job: JobSummary) -> str:
    """The result of a completed job, the progress of a running one, the job or the signal that a
    queued one waits for, else the newest error.
    """
    if job.behind is not None:
        return f"waits for job {job.behind}, which has its key"
    if job.state is State.COMPLETED:
        return job.result or ""
    if job.state is State.RUNNING and isinstance(job.progress, dict):
        fraction, message = job.progress.get("fraction"), job.progress.get("message")
        done = f"{fraction:.0%}" if isinstance(fraction, (int, float)) else ""
        return " ".join(part for part in (done, message or "") if part)
    if job.state is State.QUEUED and job.waits_for is not None:
        return f"waits for {job.waits_for}"
    if isinstance(job.error, dict):
        return f"{job.error.get('type')}: {job.error.get('message')}"
    return ""


def _errors(job: JobView) -> Sequence[Any]:
    """SQL may have written something else than a list."""
    if job.errors is None:
        return ()
    return job.errors if isinstance(job.errors, list) else [job.errors]
