"""hybrid-runner monitors migrate, add, pause, resume, quiet and remove."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from hybrid_runner.cli.monitors.arguments import given_fields
from hybrid_runner.cli.monitors.session import monitored
from hybrid_runner.cli.output import print_json, span
from hybrid_runner.cli.session import make_runner
from hybrid_runner.display import one_line
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitors import NewService
from hybrid_runner.storage import service_calls
from hybrid_runner.storage.monitor_schema import PART, install_monitors
from hybrid_runner.storage.queries import migrations

_SAID = {"pause": "is paused", "resume": "is polled again", "remove": "is forgotten"}


async def migrate(arguments: argparse.Namespace) -> int:
    app = make_runner(arguments)
    try:
        connection = await app.connect(app.settings.database.start_timeout)
        try:
            applied = await install_monitors(connection, app.connect)
        finally:
            await connection.close()
    finally:
        await app.close()
    version = migrations(PART)[-1].version
    if arguments.json:
        steps = [{"version": step.version, "name": step.name} for step in applied]
        print_json({"version": version, "applied": steps})
        return 0
    for step in applied:
        print(f"applied {step.version:04d} {step.name}")
    print(f"monitors are {'now' if applied else 'already'} at version {version}")
    return 0


async def add(arguments: argparse.Namespace) -> int:
    from hybrid_runner.monitors.services import check_columns  # noqa: PLC0415  # only to add

    fields = given_fields(arguments)
    check_columns(fields)
    service = NewService(arguments.name, arguments.url, **fields)
    async with monitored(arguments) as connection:
        number = await service_calls.add_service(connection, service)
    if arguments.json:
        print_json({"id": number, "name": arguments.name})
    else:
        print(f"service {_quoted(arguments.name)} is monitored every {span(service.every)}")
    return 0


async def switch(arguments: argparse.Namespace, what: str) -> int:
    """All of them, or none: a name that is not there changes nothing."""
    change = {
        "pause": service_calls.pause_service,
        "resume": service_calls.resume_service,
        "remove": service_calls.remove_service,
    }[what]
    names = list(dict.fromkeys(arguments.names))
    async with monitored(arguments) as connection, connection.transaction():
        for name in names:
            await change(connection, name)
    if arguments.json:
        print_json([{"name": name, "outcome": f"{what}d"} for name in names])
    else:
        for name in names:
            print(f"service {_quoted(name)} {_SAID[what]}")
    return 0


async def quiet(arguments: argparse.Namespace) -> int:
    if arguments.lasting > timedelta(days=366):
        raise ConfigurationError("a service is quiet for a year at most: pause it instead")
    until = datetime.now(UTC) + arguments.lasting if arguments.lasting else None
    async with monitored(arguments) as connection:
        await service_calls.update_service(connection, arguments.name, {"quiet_until": until})
    if arguments.json:
        print_json({"name": arguments.name, "quiet_until": until})
    elif until is None:
        print(f"service {_quoted(arguments.name)} is told of again")
    else:
        print(f"service {_quoted(arguments.name)} is quiet for {span(arguments.lasting)}")
    return 0


def _quoted(name: str) -> str:
    return repr(one_line(name))
