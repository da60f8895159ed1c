"""What the pages about monitored services have in common: whether there are any, and what is asked
of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Set as AbstractSet

from aiohttp import web

from hybrid_runner.errors import DatabaseError, RunnerError
from hybrid_runner.resilience.coalescing import Coalescing
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.jobs import unavailable

_LOOK_AGAIN = 10.0
"""Seconds after which a database without monitors is looked at again."""
_ABSENT = "monitors are not installed here: run `hybrid-runner monitors migrate`"
LONGEST_NAME = 200


class MonitorAccess:
    """Where monitors are absent, one small query in ten seconds is made, however many ask."""

    def __init__(self, connection: PageConnection) -> None:
        self._connection = connection
        self._looks = Coalescing()
        self._is_installed = False
        self._looked_at = -math.inf

    async def require(self) -> None:
        """404 unless monitors are installed."""
        if self._is_installed:
            return
        if time.monotonic() - self._looked_at >= _LOOK_AGAIN:
            try:
                await self._looks.run("monitors", self._look)
            except RunnerError as error:
                raise unavailable(error) from None
        if not self._is_installed:
            raise web.HTTPNotFound(reason=_ABSENT)

    async def _look(self) -> None:
        self._is_installed = await monitor_view_calls.has_monitors(self._connection)
        self._looked_at = time.monotonic()

    def refused(self, error: RunnerError) -> web.HTTPException:
        """What is answered when the database refuses, or does not answer. Monitors may have been
        dropped meanwhile.
        """
        if isinstance(error, DatabaseError):
            self._is_installed, self._looked_at = False, -math.inf
        return unavailable(error)


def name_in(request: web.Request) -> str:
    """The name of the service in the path: whatever is between the slashes, as it was meant."""
    return check_name(request.match_info["name"])


def check_name(name: str) -> str:
    """404 for what can be the name of no service."""
    if len(name) > LONGEST_NAME or "\x00" in name or any(map(_is_surrogate, name)):
        raise unknown_service(name)
    return name


def unknown_service(name: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(reason=f"there is no service {name[:60]!r}")


def only_queries(request: web.Request, known: AbstractSet[str]) -> None:
    """400 for what is not known here."""
    if unknown := set(request.query) - known:
        there = f"there is {', '.join(sorted(known))}" if known else "ask without parameters"
        raise web.HTTPBadRequest(reason=f"there is no {min(unknown)[:60]!r} here: {there}")


def flag_in(request: web.Request, name: str) -> bool:
    """`true` or `false`, which it is without."""
    said = request.query.get(name, "false")
    if said not in ("true", "false"):
        raise web.HTTPBadRequest(reason=f"{name}: use true or false")
    return said == "true"


def number_in(request: web.Request, name: str, usual: int, low: int, high: int) -> int:
    """A whole number between two bounds."""
    said = request.query.get(name)
    if said is None:
        return usual
    if not (said.isascii() and said.isdigit() and len(said) <= 9 and low <= int(said) <= high):
        raise web.HTTPBadRequest(reason=f"{name}: use a whole number {low} to {high}")
    return int(said)


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"
