"""GET /health, /ready and /metrics; and the form of all answers: JSON, errors included."""

from __future__ import annotations

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from hybrid_runner.telemetry.metrics.exposition import CONTENT_TYPE, as_text
from hybrid_runner.web.pages.reports import PageReports

_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


class StatusPages:
    """Answered from memory, in the pages' own thread: neither a lost database nor a busy event loop
    can hold them up.
    """

    def __init__(self, reports: PageReports) -> None:
        self._reports = reports

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/health", self.health),
            web.get("/ready", self.ready),
            web.get("/metrics", self.metrics),
        ]

    async def health(self, _request: web.Request) -> web.Response:
        """200 while all checks pass, 503 with the reason while one fails."""
        body = self._reports.health()
        return as_json(body, 200 if body["healthy"] else 503)

    async def ready(self, _request: web.Request) -> web.Response:
        """200 while the worker takes jobs, 503 before and after."""
        body = self._reports.ready()
        return as_json(body, 200 if body["ready"] else 503)

    async def metrics(self, _request: web.Request) -> web.Response:
        """All metrics in the text format of Prometheus."""
        body = as_text(self._reports.metric_values()).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def as_json(body: object, status: int, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(body),
        status=status,
        content_type="application/json",
        headers=headers,
    )


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into JSON that also lists the pages there are."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        kept = {name: error.headers[name] for name in _KEPT_HEADERS if name in error.headers}
        pages = [resource.canonical for resource in request.app.router.resources()]
        return as_json(
            {"error": f"{request.method} {request.path}: {error.reason}", "pages": pages},
            error.status,
            kept,
        )
