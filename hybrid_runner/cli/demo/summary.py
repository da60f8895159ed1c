"""What the demo says at its end: for people, and as one JSON document."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from hybrid_runner.cli.demo.figures import Figures, percentile
from hybrid_runner.cli.demo.view import describe_burst
from hybrid_runner.cli.output import STATE_COLOURS, in_colour, paint
from hybrid_runner.runner import Runner


def print_summary(figures: Figures, *, left: int) -> None:
    """Jobs by outcome, pickup by how they arrived, and the burst."""
    on = in_colour(sys.stdout)
    outcomes = ", ".join(
        f"{count:,} {paint(state, STATE_COLOURS.get(state, ''), on=on)}" for state, count in figures.outcomes().items()
    )
    settled = figures.settled
    print(f"\n{paint('What happened', 'bold', on=on)}")
    print(f"  {figures.sent:,} jobs arrived: {outcomes or 'none has ended'}")
    print(f"  {settled.get('retry', 0)} retried after an error, {settled.get('snooze', 0)} times snoozed")
    if left:
        print(f"  {left:,} were still in the queue and are cancelled")
    print(f"\n  {paint(f'''{'pickup: from due to handler':44}{'jobs':>8}{'p50':>12}{'p99':>12}''', 'dim', on=on)}")
    for name, jobs, p50, p99 in _pickups(figures):
        print(f"  {name:44}{jobs:>8,}{p50:>9.1f} ms{p99:>9.1f} ms")
    if figures.burst:
        print(f"  the burst: {describe_burst(figures)}")
    print(f"  found by   {', '.join(f'{way} {count:,}' for way, count in sorted(figures.found.items()) if count)}")


def print_advice(app: Runner) -> None:
    """What to try next."""
    on = in_colour(sys.stdout)
    psql = app.embedded.psql if app.embedded else 'psql "$HYBRID_RUNNER_DSN"'
    print(f"\n{paint('Try next', 'bold', on=on)}")
    _advise("start a worker, and leave it running" + (" (the embedded Postgres runs with it)" if app.embedded else ""))
    _command(f"{_own_command()} worker hybrid_runner.cli.demo.app:app", on=on)
    _advise("in another shell, look into the database")
    _command(psql, on=on)
    _advise("there, give the worker a job, and see what became of it")
    _command("""INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('demo', 'greeting', '{"name": "me"}');""", on=on)
    _command("SELECT id, kind, state, result FROM hybrid_runner.all_jobs ORDER BY id DESC LIMIT 5;", on=on)
    _advise("then write a handler of your own: README.md shows how")


def as_document(figures: Figures, *, left: int) -> dict[str, Any]:
    """The summary for programs; times in milliseconds."""
    burst = figures.burst
    return {
        "sent": figures.sent,
        "outcomes": dict(figures.outcomes()),
        "retried": figures.settled.get("retry", 0),
        "snoozed": figures.settled.get("snooze", 0),
        "left": left,
        "pickup": [{"arrived": name, "jobs": jobs, "p50_ms": p50, "p99_ms": p99} for name, jobs, p50, p99 in _pickups(figures)],
        "burst": None
        if burst is None
        else {"jobs": burst.jobs, "seconds": burst.seconds, "jobs_per_second": burst.jobs / burst.seconds},
        "found": figures.found,
    }


def _pickups(figures: Figures) -> list[tuple[str, int, float, float]]:
    rows = [
        (name, len(values), percentile(values, 0.5), percentile(values, 0.99))
        for name, values in (("one INSERT each (ring)", figures.single()), ("scheduled, retried, snoozed (timer)", figures.later()))
    ]
    if figures.burst:
        rows.append(("the burst (ring, then free slots)", figures.burst.jobs, figures.burst.p50, figures.burst.p99))
    return rows


def _advise(text: str) -> None:
    print(f"  {text}")


def _command(text: str, *, on: bool) -> None:
    print(f"    {paint(text, 'cyan', on=on)}")


def _own_command() -> str:
    """How to call us in this shell."""
    beside = Path(sys.executable).with_name("hybrid-runner")
    if shutil.which("hybrid-runner"):
        return "hybrid-runner"
    if beside.exists():
        return os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside)
    return f"{sys.executable} -m hybrid_runner"
