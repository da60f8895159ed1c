"""What an application does with monitored services: adding them, changing them, looking at them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from datetime import UTC, datetime
from typing import Any, Final, TypedDict, Unpack

from hybrid_runner.durations import Duration, parse_named, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitor_views import (
    MOST_LISTED,
    ServiceFilter,
    ServiceLine,
    ServiceState,
    ServiceView,
)
from hybrid_runner.model.monitors import Format, NewService
from hybrid_runner.monitors.answers.expect import Expect, compile_expect
from hybrid_runner.monitors.answers.headers import check_headers
from hybrid_runner.monitors.answers.mapping import Mapping, compile_mapping
from hybrid_runner.monitors.app import App
from hybrid_runner.storage import monitor_view_calls, service_calls

MappingOption = Mapping | AnyMapping[str, Any] | None
ExpectOption = Expect | AnyMapping[str, Any] | None


class ServiceOptions(TypedDict, total=False):
    """How a service is polled, and what is told of it."""

    every: Duration
    """5 s to 1 h; 30 s if nothing is said."""
    timeout: Duration
    """For all of one poll; up to 60 s, 10 s if nothing is said."""
    format: Format
    """What it answers; without, `mapping` if there is one, else `dependencies`."""
    mapping: MappingOption
    """Where an answer of another shape says what."""
    expect: ExpectOption
    """What must hold of an answer, or the poll has failed."""
    headers: AnyMapping[str, str] | None
    """Sent with each request; {name} stands for a secret of `Monitors(secrets=…)`."""
    follow: int
    """How many redirects are followed."""
    fail_after: int
    """So many failed polls in a row, or unhealthy answers of a dependency, count."""
    recover_after: int
    """And so many good ones."""
    depends_on: str | None
    """The name of another service: while that is down, nothing bad is told of this one."""
    labels: AnyMapping[str, Any]
    """For windows of maintenance, lists and pages."""


class ServiceChanges(ServiceOptions, total=False):
    """What else can be changed."""

    url: str


class ServiceCalls:
    """The part of `Monitors` that is about services. Whoever edits the table in plain SQL does the
    same.
    """

    _app: App

    async def add(self, name: str, url: str, **options: Unpack[ServiceOptions]) -> int:
        """Poll a service from now on; its number. ConfigurationError names the field that is
        wrong.
        """
        new = NewService(name, url, **columns_of(options))
        return await service_calls.add_service(await self._app.pool(), new)

    async def update(self, name: str, **changes: Unpack[ServiceChanges]) -> int:
        """Change what is given; another `url` is polled at once."""
        return await service_calls.update_service(await self._app.pool(), name, columns_of(changes))

    async def pause(self, name: str) -> int:
        """Poll it no more until `resume`."""
        return await service_calls.pause_service(await self._app.pool(), name)

    async def resume(self, name: str) -> int:
        """Poll it again."""
        return await service_calls.resume_service(await self._app.pool(), name)

    async def remove(self, name: str) -> int:
        """Forget it, and in time all that is known of it."""
        return await service_calls.remove_service(await self._app.pool(), name)

    async def quiet(self, name: str, lasting: Duration) -> int:
        """Tell nothing bad of it for so long; what is still bad then is told then."""
        until = datetime.now(UTC) + parse_positive("lasting", lasting)
        return await service_calls.update_service(
            await self._app.pool(), name, {"quiet_until": until}
        )

    async def list(  # what one does with services
        self,
        *,
        state: ServiceState | None = None,
        host: str | None = None,
        text: str | None = None,
        label: tuple[str, str] | None = None,
        most: int = MOST_LISTED,
        offset: int = 0,
    ) -> list[ServiceLine]:
        """Services, those that are down first."""
        wanted = ServiceFilter(state, host, text, label)
        return await monitor_view_calls.list_services(await self._app.pool(), wanted, most, offset)

    async def show(self, name: str) -> ServiceView:
        """One service with its dependencies."""
        found = await monitor_view_calls.show_service(await self._app.pool(), name)
        if found is None:
            raise ConfigurationError(f"there is no service called {name!r}")
        return found


def columns_of(options: AnyMapping[str, Any]) -> dict[str, Any]:
    columns = dict(options)
    for column in ("every", "timeout"):
        if column in columns:
            columns[column] = parse_named(column, columns[column])
    for column in ("mapping", "expect"):
        value = columns.get(column)
        if isinstance(value, (Mapping, Expect)):
            columns[column] = value.stored()
    check_columns(columns)
    return columns


def check_columns(columns: AnyMapping[str, Any]) -> None:
    """Raise ConfigurationError if a round could not use these columns."""
    for column, check in _CHECKS.items():
        if columns.get(column) is not None:
            check(columns[column])


_CHECKS: Final[dict[str, Callable[[Any], object]]] = {
    "mapping": compile_mapping,
    "expect": compile_expect,
    "headers": check_headers,
}
