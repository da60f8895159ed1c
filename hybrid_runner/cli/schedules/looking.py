"""hybrid-runner schedules list and show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from hybrid_runner.cli.output import (
    ago,
    as_text,
    counted,
    in_colour,
    paint,
    print_json,
    print_table,
    span,
)
from hybrid_runner.cli.session import opened
from hybrid_runner.display import moment_text, one_line
from hybrid_runner.model.schedules import (
    ScheduleState,
    ScheduleSummary,
    ScheduleView,
    Tick,
)
from hybrid_runner.storage.schedule_calls import no_schedule

_LIST = ("NEXT", "STATE", "SCHEDULE", "KIND", "WHEN", "LAST", "FIRED", "NOTE")
_COLOURS: dict[ScheduleState, str] = {
    "on": "green",
    "overdue": "red",
    "unknown kind": "red",
    "undeclared": "yellow",
    "paused": "dim",
    "never": "dim",
}
_LONGEST = 40


async def list_schedules(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        found = await app.schedules(most=arguments.limit + 1)
    shown = found[: arguments.limit]
    if arguments.json:
        print_json({"schedules": shown, "more": len(found) > len(shown)})
    elif not shown:
        print("no schedules")
    else:
        print_table(_LIST, [_row(one) for one in shown], [_COLOURS[one.state] for one in shown])
        if len(found) > len(shown):
            print("there are more: see --limit")
    return 0


def _row(one: ScheduleSummary) -> tuple[str, ...]:
    return (
        next_text(one),
        one.state,
        one_line(one.name)[:_LONGEST],
        one_line(one.kind)[:_LONGEST],
        one_line(one.when)[:_LONGEST],
        ago(one.last_tick) or "-",
        f"{one.fired + one.caught_up:,}",
        one_line(_note(one)),
    )


def next_text(one: ScheduleSummary) -> str:
    """When it fires next, from now."""
    return ago(one.next_at) or "never"


def _note(one: ScheduleSummary) -> str:
    said = [one.why]
    if one.state == "paused":
        said = [f"paused {ago(one.paused_at)}", one.why]
    if one.waiting:
        said.append(f"{counted(one.waiting, 'tick')} waiting for job {one.last_job} to end")
    said += [
        f"{number:,} {what}"
        for what, number in (("skipped", one.skipped), ("dropped", one.dropped))
        if number
    ]
    return "; ".join(part for part in said if part)


async def show(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        view = await app.get_schedule(arguments.name)
        if view is None:
            raise no_schedule(arguments.name)
        ticks = await app.next_ticks(view.name, arguments.next)
    if arguments.json:
        print_json(asdict(view) | {"next": [tick._asdict() for tick in ticks]})
        return 0
    coloured = in_colour(sys.stdout)
    for name, text in _lines(view):
        shown = paint(text, _COLOURS[view.state], on=coloured) if name == "state" else text
        print(f"{paint(name.ljust(10), 'dim', on=coloured)}  {shown}")
    _print_ticks(view, ticks)
    return 0


def _lines(view: ScheduleView) -> Iterator[tuple[str, str]]:
    yield "schedule", one_line(view.name)
    note = _note(view)
    yield "state", view.state + (f": {one_line(note)}" if note else "")
    yield "kind", one_line(view.kind)
    if view.queue is not None:
        yield "queue", view.queue
    yield "when", one_line(view.when)
    if view.starts_at is not None:
        yield "starts", moment_text(view.starts_at, local=True)
    if view.ends_at is not None:
        yield "ends", moment_text(view.ends_at, local=True)
    yield "overlap", view.overlap
    yield "missed", f"{view.missed}, of the last {span(view.catch_up)}"
    if view.jitter:
        yield "jitter", span(view.jitter)
    yield "job", _job(view)
    yield "payload", as_text(view.payload)
    if view.declared:
        yield "declared", f"in code, by {counted(view.workers, 'live worker')}"
    yield "made by", one_line(view.made_by)
    if view.last_tick is not None:
        job = "" if view.last_job is None else f", job {view.last_job}"
        yield "last tick", f"{ago(view.last_tick)}{job}"
    yield "ticks", _counts(view)


def _job(view: ScheduleView) -> str:
    said = [f"priority {view.priority}"]
    if view.max_attempts is not None:
        said.append(counted(view.max_attempts, "attempt"))
    if view.timeout is not None:
        said.append(f"{span(view.timeout)} each")
    return ", ".join(said)


def _counts(view: ScheduleView) -> str:
    counts = ("fired", "caught_up", "skipped", "dropped")
    return ", ".join(f"{getattr(view, each):,} {each.replace('_', ' ')}" for each in counts)


def _print_ticks(view: ScheduleView, ticks: Sequence[Tick]) -> None:
    zone = _zone(view.timezone)
    if not ticks:
        print("\nno ticks while it is paused" if view.paused_at else "\nnever fires again")
        return
    print("\nnext ticks")
    for tick in ticks:
        due = "" if tick.run_at == tick.tick else f", its job {_due(tick)}"
        print(f"  {_in(tick.tick, zone)}  {ago(tick.tick)}{due}")


def _due(tick: Tick) -> str:
    return f"{span(tick.run_at - tick.tick)} later"


def _in(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).isoformat(sep=" ", timespec="seconds")


def _zone(name: str) -> tzinfo:
    """The zone as this machine knows it; UTC if it does not."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # KeyError: there is no such zone here
        return UTC
