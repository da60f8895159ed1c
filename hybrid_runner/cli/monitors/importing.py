"""hybrid-runner monitors import."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hybrid_runner.cli.monitors.definitions import Definition, as_new, read_definitions
from hybrid_runner.cli.monitors.session import monitored
from hybrid_runner.cli.output import counted, print_json
from hybrid_runner.errors import ConfigurationError, ValueRefused
from hybrid_runner.storage import monitor_view_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection


async def load(arguments: argparse.Namespace) -> int:
    """All services of a file in one transaction."""
    definitions = read_definitions(_text_of(arguments.file))
    async with monitored(arguments) as connection:
        there = await monitor_view_calls.known_services(
            connection, [one.name for one in definitions]
        )
        if there and not arguments.update:
            first = next(one for one in definitions if one.name in there)
            raise ConfigurationError(
                f"line {first.line}: name: there is a service {first.name[:60]!r} already: --update"
                " changes it"
            )
        async with connection.transaction():
            await _store(connection, definitions, there)
    added, updated = len(definitions) - len(there), len(there)
    if arguments.json:
        print_json({"added": added, "updated": updated})
    else:
        changed = f", {counted(updated, 'service')} updated" if updated else ""
        print(f"{counted(added, 'service')} added{changed}")
    return 0


async def _store(
    connection: Connection, definitions: Sequence[Definition], there: frozenset[str]
) -> None:
    """First all services, then which depends on which: in a file they may stand in any order."""
    for one in definitions:
        fields = {name: value for name, value in one.fields.items() if name != "depends_on"}
        lone = Definition(one.line, fields)
        try:
            if one.name in there:
                await service_calls.update_service(connection, one.name, fields)
            else:
                await service_calls.add_service(connection, as_new(lone))
        except (ConfigurationError, ValueRefused) as error:
            raise _at(one, error) from error
    for one in definitions:
        if "depends_on" in one.fields:
            try:
                await service_calls.update_service(
                    connection, one.name, {"depends_on": one.fields["depends_on"]}
                )
            except (ConfigurationError, ValueRefused) as error:
                raise _at(one, error) from error


def _at(one: Definition, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"line {one.line}: {error}")


def _text_of(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name} is no text in UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror or error}") from None
