"""The runs of a job, as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.cli.output import STATE_COLOURS, as_text, print_table, span
from hybrid_runner.display import moment_text, one_line
from hybrid_runner.model.jobs import JobView, State

_RUNS = ("ATTEMPT", "END", "DUE", "STARTED", "TOOK", "WORKER")


def print_history(job: JobView) -> None:
    """Print the runs after which the job was put back, if there are any, and the last one."""
    if not isinstance(job.history, list):  # none, or written by SQL
        if job.history is not None:
            print(f"\n{one_line(as_text(job.history))}")
        return
    runs = [_row(run) if isinstance(run, dict) else _odd(run) for run in job.history]
    colours = ["dim"] * len(runs)
    if job.started_at is not None:
        runs.append(_last(job))
        colours.append(STATE_COLOURS[job.state])
    print()
    print_table(_RUNS, runs, colours)


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    started, ended = _moment(run.get("started")), _moment(run.get("ended"))
    return (
        _text(run.get("attempt")),
        _text(run.get("what")),
        _time(run.get("due")),
        _time(run.get("started")),
        span(ended - started) if started and ended and ended >= started else "",
        _text(run.get("worker")),
    )


def _last(job: JobView) -> tuple[str, ...]:
    took = job.finished_at - job.started_at if job.finished_at and job.started_at else None
    return (
        str(job.attempt),
        "" if job.state is State.RUNNING else job.state.value,
        moment_text(job.run_at, local=True),
        "" if job.started_at is None else moment_text(job.started_at, local=True),
        "" if took is None else span(max(timedelta(0), took)),
        _text(job.worker_id),
    )


def _odd(run: object) -> tuple[str, ...]:
    """What is no run: written by SQL."""
    return "", one_line(as_text(run)), "", "", "", ""


def _text(value: object) -> str:
    return "" if value is None else one_line(str(value))


def _time(value: object) -> str:
    moment = _moment(value)
    try:
        return _text(value) if moment is None else moment_text(moment, local=True)
    except OverflowError:  # at the edge of the calendar, another time zone has another year
        return _text(value)


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
