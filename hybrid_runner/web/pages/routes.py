"""What the server answers: /health, /ready, /metrics, and JSON for everything else too."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from hybrid_runner.web.pages.json_answers import as_json
from hybrid_runner.web.pages.metrics import metrics_route
from hybrid_runner.web.pages.reports import Reports

_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")


def make_application(reports: Reports) -> web.Application:
    """The pages of one worker, or of several processes as one."""
    pages = Pages(reports)
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(
        [
            web.get("/health", pages.health),
            web.get("/ready", pages.ready),
            metrics_route(reports.figures),
        ]
    )
    return application


class Pages:
    """Each answer is made from one report."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports

    async def health(self, _request: web.Request) -> web.Response:
        """200 while all is well, 503 with the reason while it is not."""
        body = self._reports.health()
        return as_json(body, 200 if body["healthy"] else 503)

    async def ready(self, _request: web.Request) -> web.Response:
        """200 while jobs are taken, 503 before and after."""
        body = self._reports.ready()
        return as_json(body, 200 if body["ready"] else 503)


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Pages that do not exist, and methods that a page does not have."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        kept = {name: error.headers[name] for name in _KEPT if name in error.headers}
        pages = [resource.canonical for resource in request.app.router.resources()]
        return as_json(
            {"error": f"{request.method} {request.path}: {error.reason}", "pages": pages},
            error.status,
            kept,
        )
