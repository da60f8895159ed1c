"""hybrid-runner monitors list and show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hybrid_runner.cli.monitors.session import monitored
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
from hybrid_runner.display import moment_text, one_line
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitor_views import (
    DependencyView,
    ServiceCounts,
    ServiceFilter,
    ServiceLine,
    ServiceState,
    ServiceView,
)
from hybrid_runner.storage import monitor_view_calls

_LIST = ("ID", "STATE", "SERVICE", "SINCE", "BREAKER", "NEXT POLL", "DEPENDENCIES", "WHY")
_DEPENDENCIES = ("", "STATE", "DEPENDENCY", "TYPE", "LATENCY", "SINCE", "WHY")
_COLOURS: dict[ServiceState, str] = {
    "down": "red",
    "unknown": "yellow",
    "maintenance": "blue",
    "up": "green",
    "paused": "dim",
}
_LONGEST_NAME = 60


async def list_services(arguments: argparse.Namespace) -> int:
    wanted = ServiceFilter(arguments.state, arguments.host, arguments.text, arguments.label)
    async with monitored(arguments) as connection:
        counts = await monitor_view_calls.count_services(connection)
        lines = await monitor_view_calls.list_services(connection, wanted, arguments.limit + 1)
    shown, has_more = lines[: arguments.limit], len(lines) > arguments.limit
    if arguments.json:
        print_json({"services": counts._asdict(), "listed": shown, "more": has_more})
    else:
        _print_list(shown, counts, has_more=has_more)
    return 0


def _print_list(lines: Sequence[ServiceLine], counts: ServiceCounts, *, has_more: bool) -> None:
    if not lines:
        print("no services" if not any(counts) else "no such services")
        return
    print_table(_LIST, [_row(line) for line in lines], [_COLOURS[line.state] for line in lines])
    said = ", ".join(f"{count:,} {name}" for name, count in counts._asdict().items() if count)
    print(f"{said}{'; not all are listed: see --limit and --state' if has_more else ''}")


def _row(line: ServiceLine) -> tuple[str, ...]:
    breaker = "" if line.breaker == "closed" else line.breaker.replace("_", " ")
    return (
        str(line.id),
        line.state,
        one_line(line.name)[:_LONGEST_NAME],
        ago(line.since),
        breaker or "-",
        "" if line.due_at is None else ago(line.due_at),
        _dependencies(line),
        one_line(_why(line)),
    )


def _dependencies(line: ServiceLine) -> str:
    if not line.dependencies:
        return "-"
    ill = f", {line.unhealthy} unhealthy" if line.unhealthy else ""
    return f"{line.dependencies}{ill}"


def _why(line: ServiceLine) -> str:
    if line.failure is not None or line.error is not None:
        times = f" ({counted(line.failures, 'failed poll')})" if line.failures > 1 else ""
        what = ": ".join(part for part in (line.failure, line.error) if part)
        return f"{what}{times}"
    return "; ".join(line.warnings)


async def show(arguments: argparse.Namespace) -> int:
    async with monitored(arguments) as connection:
        view = await monitor_view_calls.show_service(connection, arguments.name)
    if view is None:
        raise ConfigurationError(f"there is no service {one_line(arguments.name)!r}")
    if arguments.json:
        columns = asdict(view)
        print_json(columns.pop("line") | columns)
        return 0
    coloured = in_colour(sys.stdout)
    for name, text in _lines(view):
        shown = paint(text, _COLOURS[view.line.state], on=coloured) if name == "state" else text
        print(f"{paint(name.ljust(15), 'dim', on=coloured)}  {shown}")
    if view.dependencies:
        print()
        print_table(
            _DEPENDENCIES,
            [_dependency(one) for one in view.dependencies],
            ["green" if one.healthy else "red" for one in view.dependencies],
        )
    return 0


def _lines(view: ServiceView) -> Iterator[tuple[str, str]]:
    yield "service", one_line(view.line.name)
    yield from _how_it_is(view)
    yield "url", one_line(view.url)
    yield "polled", f"every {span(view.every)}, for {span(view.timeout)} at most"
    yield from _what_it_is(view)
    for warning in view.line.warnings:
        yield "warning", one_line(warning)


def _how_it_is(view: ServiceView) -> Iterator[tuple[str, str]]:
    line = view.line
    yield "state", line.state + (f" since {ago(line.since)}" if line.since else "")
    if why := one_line(_why(line)):
        yield "why", why
    if line.breaker != "closed":
        yield "breaker", f"{line.breaker.replace('_', ' ')}, opened {ago(view.opened_at)}"
    if line.polled_at is not None:
        took = "" if line.latency_ms is None else f", took {line.latency_ms:,} ms"
        yield "last poll", f"{ago(line.polled_at)}{took}"
    if line.due_at is not None:
        yield "next poll", ago(line.due_at)
    if view.quiet_until is not None:
        yield "quiet until", moment_text(view.quiet_until, local=True)
    if view.certificate_ends_at is not None:
        yield "certificate", f"ends {ago(view.certificate_ends_at)}"


def _what_it_is(view: ServiceView) -> Iterator[tuple[str, str]]:
    yield "format", view.format
    for name in ("mapping", "expect", "headers"):
        if (value := getattr(view, name)) is not None:
            yield name, as_text(value)
    if view.fail_after != 1 or view.recover_after != 1:
        bad = counted(view.fail_after, "failed poll")
        yield "patience", f"down after {bad}, up after {counted(view.recover_after, 'good one')}"
    if view.depends_on is not None:
        yield "depends on", one_line(view.depends_on)
    if view.line.labels:
        yield "labels", as_text(dict(view.line.labels))


def _dependency(one: DependencyView) -> tuple[str, ...]:
    return (
        "",
        "skipped" if one.skipped else "healthy" if one.healthy else "unhealthy",
        one_line(one.name)[:_LONGEST_NAME],
        one_line(one.type),
        f"{one.latency_ms} ms" if one.latency_ms else "",
        ago(one.last_status_change),
        one_line(_trouble(one)),
    )


def _trouble(one: DependencyView) -> str:
    parts: list[Any] = [one.error_message]
    if one.error is not None and not one.error_message:
        parts.append(as_text(one.error))
    if one.missing:
        parts.append(f"not in the last {counted(one.missing, 'answer')}")
    return "; ".join(str(part) for part in parts if part)
