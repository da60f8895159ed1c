"""hybrid-runner monitors events."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from hybrid_runner.cli.monitors.session import monitored
from hybrid_runner.cli.output import as_text, in_colour, paint
from hybrid_runner.display import moment_text, one_line
from hybrid_runner.errors import ConfigurationError, DatabaseUnavailable, RunnerError
from hybrid_runner.model.monitor_views import MOST_EVENTS, MonitorEvent
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection

LOOK: Final = 0.3
"""Seconds between two looks for new events."""
_LAMP: Final = timedelta(seconds=6)
_OUTAGE: Final = GrowingPause(timedelta(seconds=2 * LOOK), timedelta(seconds=5), 2)
"""Postgres does not answer."""
_COLOURS: Final = {
    "service:down": "red",
    "poll:error": "red",
    "circuit:open": "red",
    "service:up": "green",
    "circuit:close": "green",
    "status:change": "yellow",
    "dependency:gone": "yellow",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """Which events are shown."""

    kinds: frozenset[str] | None
    service_id: int | None
    suppressed: bool

    def takes(self, one: MonitorEvent) -> bool:
        return (
            (self.kinds is None or one.kind in self.kinds)
            and self.service_id in (None, one.service_id)
            and (self.suppressed or one.suppressed is None)
        )


async def listen(arguments: argparse.Namespace) -> int:
    """The past, then what happens; an outage of Postgres is waited for."""
    async with monitored(arguments) as connection:
        wish = await _wish_of(arguments, connection)
        at = await _print_past(arguments, connection, wish)
    if not arguments.follow:
        return 0
    failures = 0
    while True:
        try:
            async with monitored(arguments) as connection:
                failures = 0
                while True:
                    at = await _go_on(arguments, connection, wish, at)
        except DatabaseUnavailable as error:
            if not failures:
                print(
                    f"hybrid-runner: {one_line(str(error))}: going on once it answers",
                    file=sys.stderr,
                )
            failures += 1
            await asyncio.sleep(_OUTAGE.after(failures).total_seconds())


async def _wish_of(arguments: argparse.Namespace, connection: Connection) -> Wish:
    number = None
    if arguments.service is not None:
        view = await monitor_view_calls.show_service(connection, arguments.service)
        if view is None:
            raise ConfigurationError(f"there is no service {one_line(arguments.service)!r}")
        number = view.line.id
    kinds = frozenset(arguments.kind) if arguments.kind else None
    return Wish(kinds, number, arguments.suppressed)


async def _print_past(arguments: argparse.Namespace, connection: Connection, wish: Wish) -> int:
    """Print what was; the id of the event behind which it goes on."""
    if arguments.after is not None:
        return await _print_after(arguments, connection, wish)
    newest = await monitor_view_calls.newest_event(connection)
    found, taken = await monitor_view_calls.newest_events(connection), list[MonitorEvent]()
    newest = max(newest, found[-1].id if found else 0)
    while found and len(taken) < arguments.limit:
        taken = [one for one in found if wish.takes(one)] + taken
        first = found[0].id  # ids are dense: what is before it are so many
        before = await monitor_view_calls.events_after(connection, first - MOST_EVENTS - 1)
        found = [one for one in before if one.id < first]
    _print(taken[max(0, len(taken) - arguments.limit) :], as_json=arguments.json)
    return newest


async def _print_after(arguments: argparse.Namespace, connection: Connection, wish: Wish) -> int:
    at, left = arguments.after, arguments.limit
    while left and (found := await monitor_view_calls.events_after(connection, at)):
        taken = [one for one in found if wish.takes(one)][:left]
        _print(taken, as_json=arguments.json)
        left -= len(taken)
        at = found[-1].id if left else taken[-1].id
    return int(at)


async def _go_on(arguments: argparse.Namespace, connection: Connection, wish: Wish, at: int) -> int:
    try:
        await monitor_view_calls.announce_event_readers(connection, _LAMP)
    except DatabaseUnavailable:
        raise
    except RunnerError:  # who may only read sees all but good polls
        pass
    events = await monitor_view_calls.events_after(connection, at)
    if events and at and events[0].id > at + 1:
        print(
            f"hybrid-runner: {events[0].id - at - 1} events are forgotten already", file=sys.stderr
        )
    _print([one for one in events if wish.takes(one)], as_json=arguments.json)
    if len(events) < MOST_EVENTS:
        await asyncio.sleep(LOOK)
    return events[-1].id if events else at


def _print(events: Sequence[MonitorEvent], *, as_json: bool) -> None:
    for one in events:
        print(_json(one) if as_json else _line(one), flush=True)


def _json(one: MonitorEvent) -> str:
    return json.dumps(one._asdict() | {"at": moment_text(one.at)})


def _line(one: MonitorEvent) -> str:
    coloured = in_colour(sys.stdout)
    kind = paint(one.kind.ljust(15), _COLOURS.get(one.kind, "dim"), on=coloured)
    hushed = f" (not told: {one.suppressed})" if one.suppressed else ""
    when = moment_text(one.at, local=True)
    return f"{one.id:>8}  {when}  {kind}  {one_line(_about(one.payload))}{hushed}"


def _about(payload: Mapping[str, Any]) -> str:
    name = payload.get("serviceName") or f"service {payload.get('serviceId')}"
    parts = [str(name)]
    if dependency := payload.get("dependencyName"):
        parts.append(str(dependency))
    if "currentHealthy" in payload:
        parts.append("is healthy" if payload["currentHealthy"] else "is unhealthy")
    if "latencyMs" in payload:
        parts.append(f"{payload['latencyMs']} ms")
    if (error := payload.get("error")) is not None:
        parts.append(error if isinstance(error, str) else as_text(error))
    return ": ".join(parts)
