"""The storage calls for many services at once: each runs the file of sql/monitors/queries that has
its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.monitor_calls import refused

_LARGEST = 200 * 1024 * 1024


async def add_services(on: Fetches, services: Sequence[Mapping[str, Any]]) -> int:
    """Store services, whose columns are given by their names; how many. All of them, or none."""
    with _refusals():
        return int(await fetch_value(on, "add_services", _json(services)))


async def change_services(on: Fetches, services: Sequence[Mapping[str, Any]]) -> int:
    """Change services by their names, each in the columns that are given; how many."""
    with _refusals():
        return int(await fetch_value(on, "change_services", _json(services)))


async def set_parents(on: Fetches, parents: Mapping[str, str | None]) -> frozenset[str]:
    """Say which other service each depends on; the names of those of which that was said: the
    others name a service that is not there.
    """
    with _refusals():
        rows = await fetch(on, "set_parents", list(parents), list(parents.values()))
    return frozenset(row["name"] for row in rows)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RunnerError as error:
        raise refused(error) from error


def _json(services: Sequence[Mapping[str, Any]]) -> str:
    try:
        return encode([_plain(one) for one in services], "the services", _LARGEST)
    except NotStorable as error:
        raise ConfigurationError(str(error)) from None


def _plain(service: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in service.items()
    }
