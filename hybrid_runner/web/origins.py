"""Pages of other sites that may read here where jobs, schedules and services stand: a browser asks
whether it may show them an answer (CORS). Nobody else is held off or let in by it.
"""

from __future__ import annotations

import re

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_OPEN = re.compile(
    r"/events|/jobs/[^/]+|/jobs/[^/]+/events|/schedules|/schedules/[^/]+"
    r"|/monitors|/monitors/[^/]+|/monitors/[^/]+/history"
)
"""What is read by pages of others: the streams, and what they are about."""
_READS = ("GET", "HEAD")
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Authorization, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}


class Origins:
    """`names` is the setting `http_origins`. Cookies and logins of a browser are never asked for:
    what jobs carry is shown for the token alone, which a page has to send itself.
    """

    def __init__(self, names: str | None = None) -> None:
        self._names = {_plain(name) for name in (names or "").split(",")} - {""}

    def allows(self, origin: str | None) -> bool:
        """Whether a page that was loaded from there may read."""
        return origin is not None and origin.lower() in self._names

    def middleware(self) -> Middleware:
        """Answers a browser that asks before it sends the token."""

        @web.middleware
        async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
            asks = "Access-Control-Request-Method" in request.headers
            if request.method == "OPTIONS" and asks and self._opens(request):
                return web.Response(status=204, headers=_ALLOWED)
            return await handler(request)

        return answer

    async def mark(self, request: web.Request, response: web.StreamResponse) -> None:
        """Say in an answer who may read it; errors too, so that a page can tell them apart."""
        if not self._names or _OPEN.fullmatch(request.rel_url.raw_path) is None:
            return
        response.headers.add("Vary", "Origin")
        if request.method in (*_READS, "OPTIONS") and self._opens(request):
            response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            response.headers["Access-Control-Expose-Headers"] = "Retry-After"

    def _opens(self, request: web.Request) -> bool:
        return _OPEN.fullmatch(request.rel_url.raw_path) is not None and self.allows(
            request.headers.get("Origin")
        )


def _plain(name: str) -> str:
    """As browsers write it: in lower case, and without the port that a scheme has anyway."""
    text = name.strip().lower()
    for scheme, port in (("http://", ":80"), ("https://", ":443")):
        if text.startswith(scheme):
            return text.removesuffix(port)
    return text
