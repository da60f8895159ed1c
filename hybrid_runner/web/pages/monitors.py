"""GET /monitors, one service, its history, and POST to have it polled now."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, get_args

import orjson
from aiohttp import web

from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.model.monitor_views import (
    MOST_HISTORY,
    MOST_LISTED,
    MOST_OFFSET,
    ErrorRow,
    ServiceFilter,
    ServiceState,
    ServiceView,
)
from hybrid_runner.storage import monitor_calls, monitor_view_calls
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.jobs import json_text
from hybrid_runner.web.pages.monitor_access import (
    MonitorAccess,
    name_in,
    number_in,
    only_queries,
    unknown_service,
)
from hybrid_runner.web.pages.status import as_json

HIDDEN_OF_LINE = ("error", "warnings")
HIDDEN = ("url", "mapping", "expect", "headers", *HIDDEN_OF_LINE)
"""What only the token reveals: addresses, and what answers and failures said."""
HIDDEN_OF_DEPENDENCY = ("contact", "check_details", "error", "error_message")
_USUAL_MOST = 100
_HOURS = int(MOST_HISTORY.total_seconds()) // 3600
_STATES: tuple[str, ...] = get_args(ServiceState)


class MonitorPages:
    """Every answer is read from the database."""

    def __init__(
        self, connection: PageConnection, monitors: MonitorAccess, access: TokenCheck
    ) -> None:
        self._connection = connection
        self._monitors = monitors
        self._access = access

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/monitors", self.listing),
            web.get("/monitors/{name}", self.show),
            web.get("/monitors/{name}/history", self.history),
            web.post("/monitors/{name}/poll", self.poll),
        ]

    async def listing(self, request: web.Request) -> web.Response:
        """Services, those that are down first; `?state=`, `host`, `text`, `label=name=value`."""
        only_queries(request, {"state", "host", "text", "label", "limit", "offset"})
        wanted = _filter_of(request)
        most = number_in(request, "limit", _USUAL_MOST, 1, MOST_LISTED)
        offset = number_in(request, "offset", 0, 0, MOST_OFFSET)
        granted = self._access.is_granted(request)
        await self._monitors.require()
        try:
            counts = await monitor_view_calls.count_services(self._connection)
            lines = await monitor_view_calls.list_services(
                self._connection, wanted, most + 1, offset
            )
        except RunnerError as error:
            raise self._monitors.refused(error) from None
        hidden = () if granted else HIDDEN_OF_LINE
        body = {
            "services": counts._asdict(),
            "listed": [_without(asdict(line), hidden) for line in lines[:most]],
            "more": len(lines) > most,
        }
        return _answer(body, hidden)

    async def show(self, request: web.Request) -> web.Response:
        """Everything about one service and its dependencies."""
        only_queries(request, set())
        granted = self._access.is_granted(request)
        view = await self._view(name_in(request))
        columns = asdict(view)
        columns = columns.pop("line") | columns
        columns["dependencies"] = [
            _without(one, () if granted else HIDDEN_OF_DEPENDENCY)
            for one in columns["dependencies"]
        ]
        hidden = () if granted else HIDDEN
        shown = _without(columns, hidden)
        return _answer(shown, () if granted else (*HIDDEN, *_of_dependencies()))

    async def history(self, request: web.Request) -> web.Response:
        """What went wrong when, and latencies by the hour."""
        only_queries(request, {"hours", "dependency", "limit"})
        lasting = timedelta(hours=number_in(request, "hours", 24, 1, _HOURS))
        most = number_in(request, "limit", _USUAL_MOST, 1, MOST_LISTED)
        dependency = _text_in(request, "dependency")
        granted = self._access.is_granted(request)
        view = await self._view(name_in(request))
        try:
            found = await monitor_view_calls.service_history(
                self._connection, view.line.id, lasting, most, dependency
            )
        except RunnerError as error:
            raise self._monitors.refused(error) from None
        body = {
            "name": view.line.name,
            "errors": [_error(row, granted=granted) for row in found.errors],
            "hours": [row._asdict() for row in found.hours],
        }
        return _answer(body, () if granted else ("error", "message"))

    async def poll(self, request: web.Request) -> web.Response:
        """Have it polled now, whatever its breaker says."""
        self._access.require(request)
        name = name_in(request)
        await self._monitors.require()
        try:
            service_id = await monitor_calls.ask_poll(self._connection, name)
        except ConfigurationError as error:
            raise _refused_poll(name, error) from None
        except RunnerError as error:
            raise self._monitors.refused(error) from None
        return as_json({"id": service_id, "name": name, "outcome": "asked"}, 202)

    async def _view(self, name: str) -> ServiceView:
        await self._monitors.require()
        try:
            view = await monitor_view_calls.show_service(self._connection, name)
        except RunnerError as error:
            raise self._monitors.refused(error) from None
        if view is None:
            raise unknown_service(name)
        return view


def _refused_poll(name: str, error: ConfigurationError) -> web.HTTPException:
    if "there is no service" in str(error):
        return unknown_service(name)
    return web.HTTPConflict(reason=str(error))


def _filter_of(request: web.Request) -> ServiceFilter:
    state = request.query.get("state")
    if state is not None and state not in _STATES:
        raise web.HTTPBadRequest(reason=f"state: use one of {', '.join(_STATES)}")
    label = _text_in(request, "label")
    if label is not None and "=" not in label:
        raise web.HTTPBadRequest(reason="label: write it as name=value")
    name, _, value = (label or "").partition("=")
    return ServiceFilter(
        state=next((each for each in get_args(ServiceState) if each == state), None),
        host=_text_in(request, "host"),
        text=_text_in(request, "text"),
        label=None if label is None else (name, value),
    )


def _text_in(request: web.Request, name: str) -> str | None:
    text = request.query.get(name)
    if text is not None and ("\x00" in text or not _is_text(text) or len(text) > 500):
        raise web.HTTPBadRequest(reason=f"{name}: at most 500 characters, and no NUL")
    return text


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _error(row: ErrorRow, *, granted: bool) -> dict[str, Any]:
    shown = row._asdict() | {"recovered": row.is_recovery}
    return shown if granted else _without(shown, ("error", "message"))


def _without(columns: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name not in hidden}


def _of_dependencies() -> tuple[str, ...]:
    return tuple(f"dependencies.{name}" for name in HIDDEN_OF_DEPENDENCY)


def _answer(body: dict[str, Any], hidden: tuple[str, ...]) -> web.Response:
    shown = body | ({"hidden": hidden} if hidden else {})
    return as_json(orjson.Fragment(json_text(shown)), 200)
