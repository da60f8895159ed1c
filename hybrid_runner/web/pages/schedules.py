"""GET /schedules, and one of them with its next ticks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import orjson
from aiohttp import web

from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.handlers.schedules import check_schedule_name
from hybrid_runner.model.schedules import MOST_LISTED, ScheduleSummary
from hybrid_runner.storage import schedule_calls
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.jobs import can_be_written, json_text, unavailable
from hybrid_runner.web.pages.monitor_access import number_in, only_queries
from hybrid_runner.web.pages.status import as_json

HIDDEN = ("payload", "made_by", "note")
"""What only the token reveals; a note may hold what Postgres said."""
_USUAL_MOST = 100
_MOST_SKIPPED = 1_000_000
_MOST_NEXT = 100


class SchedulePages:
    """Every answer is read from the database."""

    def __init__(self, connection: PageConnection, access: TokenCheck) -> None:
        self._connection = connection
        self._access = access

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/schedules", self.listing), web.get("/schedules/{name}", self.show)]

    async def listing(self, request: web.Request) -> web.Response:
        """Schedules by name; `?limit=`, `offset=`."""
        only_queries(request, {"limit", "offset"})
        most = number_in(request, "limit", _USUAL_MOST, 1, MOST_LISTED)
        offset = number_in(request, "offset", 0, 0, _MOST_SKIPPED)
        hidden = () if self._access.is_granted(request) else HIDDEN[1:]
        try:
            found = await schedule_calls.list_schedules(self._connection, most + 1, offset)
        except RunnerError as error:
            raise unavailable(error) from None
        body = {
            "schedules": [_shown(one, hidden) for one in found[:most]],
            "more": len(found) > most,
        }
        return _answer(body, hidden)

    async def show(self, request: web.Request) -> web.Response:
        """One schedule, and its next ticks; `?next=`."""
        only_queries(request, {"next"})
        most = number_in(request, "next", 5, 1, _MOST_NEXT)
        name = _name_in(request)
        hidden: tuple[str, ...] = () if self._access.is_granted(request) else HIDDEN
        try:
            view = await schedule_calls.get_schedule(self._connection, name)
            if view is None:
                raise _unknown(name)
            ticks = await schedule_calls.next_ticks_of(self._connection, name, most)
        except ConfigurationError:  # it is gone since
            raise _unknown(name) from None
        except RunnerError as error:
            raise unavailable(error) from None
        if not can_be_written(view.payload):
            hidden = ("payload", *(each for each in hidden if each != "payload"))
        body = _shown(view, hidden) | {"next": [tick._asdict() for tick in ticks]}
        return _answer(body, hidden)


def _name_in(request: web.Request) -> str:
    name = request.match_info["name"]
    try:
        check_schedule_name(name)
    except ConfigurationError:
        raise _unknown(name) from None
    return name


def _unknown(name: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(reason=f"there is no schedule {name[:60]!r}")


def _shown(one: ScheduleSummary, hidden: tuple[str, ...]) -> dict[str, Any]:
    names = [each.name for each in fields(one) if each.name not in hidden]
    shown = {name: getattr(one, name) for name in names}
    return shown | {"when": one.when}


def _answer(body: dict[str, Any], hidden: tuple[str, ...]) -> web.Response:
    return as_json(orjson.Fragment(json_text(body | ({"hidden": hidden} if hidden else {}))), 200)
