"""GET /status: how monitored services are, for everybody: plain HTML without a script. Off unless
the setting `http_status` says what it may show.
"""

from __future__ import annotations

import time
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256

from aiohttp import web

from hybrid_runner.errors import RunnerError
from hybrid_runner.resilience.coalescing import Coalescing
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.monitor_access import MonitorAccess
from hybrid_runner.web.pages.status_html import STYLE, StatusPage, html_of

_FRESH = 5.0
"""Seconds for which the page is given again to others."""
MOST_SHOWN = 1000
"""Services on the page, the worst first."""
_OFF = "there is no status page: the setting HYBRID_RUNNER_HTTP_STATUS says what it may show"
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "public, max-age=15",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        f" style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PublicPage:
    """It is made at most once in five seconds, however many ask; who asks while it is made, or
    while Postgres does not answer, waits for the same answer as the others.
    """

    def __init__(
        self, connection: PageConnection, monitors: MonitorAccess, shown: str | None
    ) -> None:
        self._connection = connection
        self._monitors = monitors
        self._shown = shown
        self._making = Coalescing()
        self._body = b""
        self._made_at = float("-inf")

    async def page(self, _request: web.Request) -> web.Response:
        """The page; 404 where it is off."""
        if (shown := self._shown) is None:
            raise web.HTTPNotFound(reason=_OFF)
        await self._monitors.require()
        if time.monotonic() - self._made_at >= _FRESH:
            try:
                await self._making.run("page", lambda: self._make(shown))
            except RunnerError as error:
                raise self._monitors.refused(error) from None
        return web.Response(body=self._body, headers=HEADERS)

    async def _make(self, shown: str) -> None:
        name, _, value = shown.partition("=")
        label = None if shown == "all" else (name.strip(), value.strip())
        services = await monitor_view_calls.public_services(self._connection, label, MOST_SHOWN + 1)
        page = StatusPage(
            services[:MOST_SHOWN], has_more=len(services) > MOST_SHOWN, at=datetime.now(UTC)
        )
        self._body = html_of(page).encode()
        self._made_at = time.monotonic()
