"""The end of the demo: its results and advice for people, or one JSON document."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from hybrid_runner.cli.demo.observations import Burst, Observations
from hybrid_runner.cli.output import STATE_COLOURS, counted, in_colour, paint
from hybrid_runner.display import percentile
from hybrid_runner.runner import Runner

_NARROW = 74
"""Columns for a command: the usual 80 without margins."""


def print_summary(seen: Observations) -> None:
    """Jobs by outcome, pickup by how they arrived, and the burst."""
    on = in_colour(sys.stdout)
    outcomes = ", ".join(
        f"{count:,} {paint(state, STATE_COLOURS.get(state, ''), on=on)}"
        for state, count in seen.outcomes().items()
    )
    settled = seen.settled
    print(f"\n{paint('What happened', 'bold', on=on)}")
    print(f"  {counted(seen.sent, 'job')} arrived: {outcomes or 'none has ended'}")
    print(
        f"  {settled.get('retry', 0):,} retried after an error,"
        f" {counted(settled.get('snooze', 0), 'snooze')}"
    )
    if left := seen.outcomes()["cancelled"]:
        print(
            f"  the cancelled {'one was' if left == 1 else 'ones were'} not done yet when the demo"
            " ended"
        )
    head = f"{'pickup: from due to handler':44}{'jobs':>8}{'p50':>12}{'p99':>12}"
    print(f"\n  {paint(head, 'dim', on=on)}")
    for name, jobs, p50, p99 in _pickups(seen):
        print(f"  {name:44}{jobs:>8,}{_milliseconds(p50):>12}{_milliseconds(p99):>12}")
    if seen.burst:
        print(f"  the burst: {_describe_burst(seen.burst)}")
    ways = ", ".join(f"{way} {count:,}" for way, count in sorted(seen.found.items()) if count)
    print(f"  found by   {ways or '-'}")


def print_advice(app: Runner) -> None:
    """Print commands to try next."""
    on = in_colour(sys.stdout)
    psql = app.embedded.psql if app.embedded else 'psql "$HYBRID_RUNNER_DSN"'
    print(f"\n{paint('Try next', 'bold', on=on)}")
    _advise(
        "start a worker, and leave it running"
        + (" (the embedded Postgres runs with it)" if app.embedded else "")
    )
    _shell(f"{_own_command()} worker hybrid_runner.cli.demo.app:app", on=on)
    _advise("in another shell, look into the database")
    _shell(psql, on=on)
    _advise("there, give the worker a job, and see what became of it")
    _command("INSERT INTO hybrid_runner.jobs (queue, kind, payload)", on=on)
    _command("""  VALUES ('demo', 'greeting', '{"name": "me"}');""", on=on)
    _command("SELECT id, kind, state, result FROM hybrid_runner.all_jobs", on=on)
    _command("  ORDER BY id DESC LIMIT 5;", on=on)
    _advise("then write a handler of your own: README.md shows how")


def as_document(seen: Observations) -> dict[str, Any]:
    """The summary for programs; times in milliseconds."""
    burst = seen.burst
    return {
        "sent": seen.sent,
        "outcomes": dict(seen.outcomes()),
        "retried": seen.settled.get("retry", 0),
        "snoozed": seen.settled.get("snooze", 0),
        "left": seen.outcomes()["cancelled"],
        "pickup": [
            {"arrived": name, "jobs": jobs, "p50_ms": p50, "p99_ms": p99}
            for name, jobs, p50, p99 in _pickups(seen)
        ],
        "burst": (
            None
            if burst is None
            else {
                "jobs": burst.jobs,
                "seconds": burst.seconds,
                "jobs_per_second": burst.jobs / burst.seconds,
            }
        ),
        "found": seen.found,
    }


def _pickups(seen: Observations) -> list[tuple[str, int, float | None, float | None]]:
    rows: list[tuple[str, int, float | None, float | None]] = [
        (
            name,
            len(values),
            *((percentile(values, 0.5), percentile(values, 0.99)) if values else (None, None)),
        )
        for name, values in (
            ("one INSERT each (ring)", seen.single()),
            ("scheduled, retried, snoozed (timer)", seen.later()),
        )
    ]
    if seen.burst:
        rows.append(
            (
                "the burst (ring, then free slots)",
                seen.burst.jobs,
                seen.burst.p50,
                seen.burst.p99,
            )
        )
    return rows


def _describe_burst(burst: Burst) -> str:
    return (
        f"{burst.jobs:,} jobs from INSERT to archive in {burst.seconds:.2f} s,"
        f" {burst.jobs / burst.seconds:,.0f} jobs/s"
    )


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _advise(text: str) -> None:
    print(f"  {text}")


def _command(text: str, *, on: bool) -> None:
    print(f"    {paint(text, 'cyan', on=on)}")


def _shell(text: str, *, on: bool) -> None:
    """On one line, or on several that end in a backslash: most terminals are narrow."""
    if len(text) <= _NARROW:
        _command(text, on=on)
        return
    first, *others = shlex.split(text, posix=False)  # quotes are kept
    for number, word in enumerate([first, *others]):
        _command("  " * bool(number) + word + " \\" * (number < len(others)), on=on)


def _own_command() -> str:
    """The command that starts this program in this shell."""
    beside = Path(sys.executable).with_name("hybrid-runner")
    if shutil.which("hybrid-runner"):
        return "hybrid-runner"
    if beside.exists():
        return os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside)
    return f"{sys.executable} -m hybrid_runner"
