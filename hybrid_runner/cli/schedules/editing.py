"""hybrid-runner schedules add, run, pause, resume and remove."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

from hybrid_runner.cli.output import ago, print_json
from hybrid_runner.cli.schedules.arguments import asked_for
from hybrid_runner.cli.session import opened, show_typos
from hybrid_runner.display import moment_text
from hybrid_runner.storage import schedule_calls


class _Said(NamedTuple):
    outcome: str
    done: str
    unchanged: str


_SAID: Final[Mapping[str, _Said]] = {
    "pause": _Said("paused", "is paused", "was paused already"),
    "resume": _Said("resumed", "fires again", "was not paused"),
    "remove": _Said("removed", "is forgotten", "was gone already"),
}
_CALLS = {
    "pause": schedule_calls.pause_schedule,
    "resume": schedule_calls.resume_schedule,
    "remove": schedule_calls.remove_schedule,
}


async def add(arguments: argparse.Namespace) -> int:
    payload, options = asked_for(arguments)
    async with opened(arguments) as app:
        show_typos(arguments, app)
        next_at = await app.add_schedule(arguments.name, arguments.kind, payload, **options)
    if arguments.json:
        print_json({"name": arguments.name, "next_at": next_at})
    elif next_at is None:
        print(f"schedule {arguments.name!r} is stored, and never fires: no time is left")
    else:
        when = moment_text(next_at, local=True)
        print(f"schedule {arguments.name!r} fires {ago(next_at)}, at {when}")
    return 0


async def switch(arguments: argparse.Namespace, what: str) -> int:
    """All of them, or none: a name that is not there changes nothing."""
    names = list(dict.fromkeys(arguments.names))
    async with opened(arguments) as app:
        connection = await app.connect()
        try:
            async with connection.transaction():
                for name in names:
                    if await schedule_calls.get_schedule(connection, name) is None:
                        raise schedule_calls.no_schedule(name)
                changed = {name: await _CALLS[what](connection, name) for name in names}
        finally:
            await connection.close()
    said = _SAID[what]
    if arguments.json:
        print_json(
            [
                {"name": name, "outcome": said.outcome, "changed": changes}
                for name, changes in changed.items()
            ]
        )
        return 0
    for name, changes in changed.items():
        print(f"schedule {name!r} {said.done if changes else said.unchanged}")
    return 0


async def run_now(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        handle = await app.run_now(arguments.name)
    if arguments.json:
        print_json({"name": arguments.name, "id": handle.id, "enqueued": handle.enqueued})
    else:
        said = "is queued" if handle.enqueued == "inserted" else "lives already: nothing was stored"
        print(f"job {handle.id} of schedule {arguments.name!r} {said}")
    return 0
