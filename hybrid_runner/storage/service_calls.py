"""The storage calls for those who say what is monitored: each runs the file of sql/monitors/queries
that has its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.model.monitors import NewService
from hybrid_runner.storage.connections.statements import Fetches, fetch_value
from hybrid_runner.storage.monitor_calls import refused

_CHANGEABLE = (
    *("name", "url", "every", "timeout", "format", "mapping", "expect", "headers", "follow"),
    *("fail_after", "recover_after", "depends_on", "labels", "active", "quiet_until"),
)
_LARGEST = 64 * 1024


async def add_service(on: Fetches, service: NewService) -> int:
    """Store a service; its id. ConfigurationError says in one line what is wrong with it."""
    columns = {name: getattr(service, name) for name in _CHANGEABLE if name != "quiet_until"}
    if service.format is None:
        del columns["format"]
    with _refusals(service.name):
        return _found(await fetch_value(on, "add_service", _json(columns)), service.name)


async def update_service(on: Fetches, name: str, changes: Mapping[str, Any]) -> int:
    """Change these columns of a service; its id."""
    for column in changes:
        if column not in _CHANGEABLE:
            raise ConfigurationError(
                f"a service has no {column}: change one of {', '.join(_CHANGEABLE)}"
            )
    with _refusals(str(changes.get("name", name))):
        return _found(await fetch_value(on, "update_service", name, _json(changes)), name)


async def pause_service(on: Fetches, name: str) -> int:
    """Poll it no more until it is resumed; its id."""
    return await update_service(on, name, {"active": False})


async def resume_service(on: Fetches, name: str) -> int:
    """Poll it again; its id."""
    return await update_service(on, name, {"active": True})


async def remove_service(on: Fetches, name: str) -> int:
    """Forget a service; the id that it had."""
    with _refusals(name):
        return _found(await fetch_value(on, "remove_service", name), name)


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except RunnerError as error:
        if error.sqlstate == "23505":
            raise ConfigurationError(
                f"another service is called {name!r}: choose another name, or update that one"
            ) from error
        raise refused(error) from error


def _found(service_id: int | None, name: str) -> int:
    if service_id is None:
        raise ConfigurationError(f"there is no service called {name!r}")
    return service_id


def _json(columns: Mapping[str, Any]) -> str:
    plain = {name: _plain(value) for name, value in columns.items()}
    try:
        return encode(plain, "the service", _LARGEST)
    except NotStorable as error:
        raise ConfigurationError(str(error)) from None


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case _:
            return value
