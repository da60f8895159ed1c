"""hybrid-runner monitors import."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from hybrid_runner.cli.monitors.definitions import LARGEST, Definition, read_definitions
from hybrid_runner.cli.monitors.session import monitored
from hybrid_runner.cli.output import counted, print_json
from hybrid_runner.errors import ConfigurationError, ValueRefused
from hybrid_runner.storage import monitor_view_calls, service_imports
from hybrid_runner.storage.connections.connection import Connection


async def load(arguments: argparse.Namespace) -> int:
    """All services of a file in one transaction."""
    definitions = read_definitions(_text_of(arguments.file))
    for one in definitions:
        _check(one)
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
    await _try(
        connection,
        [one for one in definitions if one.name not in there],
        lambda some: service_imports.add_services(connection, list(map(_alone, some))),
    )
    await _try(
        connection,
        [one for one in definitions if one.name in there],
        lambda some: service_imports.change_services(connection, list(map(_alone, some))),
    )
    children = [one for one in definitions if "depends_on" in one.fields]
    await _try(connection, children, lambda some: _set_parents(connection, some))


async def _try(
    connection: Connection,
    definitions: Sequence[Definition],
    store: Callable[[Sequence[Definition]], Awaitable[object]],
) -> None:
    """In one statement. If Postgres refuses that, by halves, until it is known which one it is
    about.
    """
    if not definitions:
        return
    try:
        async with connection.transaction():
            await store(definitions)
    except (ConfigurationError, ValueRefused) as error:
        if len(definitions) == 1:
            raise _at(definitions[0], error) from error
        half = len(definitions) // 2
        await _try(connection, definitions[:half], store)
        await _try(connection, definitions[half:], store)


async def _set_parents(connection: Connection, children: Sequence[Definition]) -> None:
    parents = {one.name: one.fields["depends_on"] for one in children}
    done = await service_imports.set_parents(connection, parents)
    for one in children:
        if one.name not in done:
            raise _at(
                one, ConfigurationError(f"depends_on: there is no service {parents[one.name]!r}")
            )


def _check(one: Definition) -> None:
    from hybrid_runner.monitors.services import check_columns  # noqa: PLC0415  # only to import

    try:
        check_columns(one.fields)
    except ConfigurationError as error:
        raise _at(one, error) from error


def _alone(one: Definition) -> dict[str, Any]:
    return {name: value for name, value in one.fields.items() if name != "depends_on"}


def _at(one: Definition, error: Exception) -> ConfigurationError:
    """The error with its line; another one has been there already."""
    said = str(error)
    return ConfigurationError(said if said.startswith("line ") else f"line {one.line}: {said}")


def _text_of(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(LARGEST + 1)
        with Path(name).open(encoding="utf-8") as file:
            return file.read(LARGEST + 1)
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name} is no text in UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror or error}") from None
