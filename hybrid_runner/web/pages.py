"""What the server answers: /health, /ready, and JSON for everything else too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from hybrid_runner.version import VERSION
from hybrid_runner.web.health import checks_of, phase_of
from hybrid_runner.worker.status import WorkerStatus

Look = Callable[[], WorkerStatus | None]
"""How the pages see the worker; None until it has started."""


def make_application(look: Look) -> web.Application:
    """The pages of one worker."""
    pages = Pages(look)
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes([web.get("/health", pages.health), web.get("/ready", pages.ready)])
    return application


class Pages:
    """Each answer is made from one snapshot, in memory, so no busy pool and no lost database can hold it up."""

    def __init__(self, look: Look) -> None:
        self._look = look

    async def health(self, _request: web.Request) -> web.Response:
        """200 while the worker is well, 503 with the reason while it is not."""
        status = self._look()
        checks = checks_of(status)
        healthy = all(check.ok for check in checks)
        body = {
            "healthy": healthy,
            "phase": phase_of(status),
            "version": VERSION,
            "checks": [asdict(check) for check in checks],
            "worker": None if status is None else figures(status),
        }
        return _json(body, 200 if healthy else 503)

    async def ready(self, _request: web.Request) -> web.Response:
        """200 while the worker takes jobs, 503 before and after."""
        phase = phase_of(self._look())
        ready = phase == "running"
        return _json({"ready": ready, "phase": phase}, 200 if ready else 503)


def figures(status: WorkerStatus) -> dict[str, object]:
    """The worker's figures: sums over its queues, the worst of what counts in a row, and each queue by itself."""
    queues = status.queues
    found = sum((Counter(queue.found) for queue in queues), Counter[str]())
    return {
        "id": status.id,
        "hearing": status.hearing,
        "slots": sum(queue.slots for queue in queues),
        "running": status.running,
        "looks": sum(queue.looks for queue in queues),
        "empty_looks": sum(queue.empty_looks for queue in queues),
        "found": dict(found),
        "polls": sum(queue.polls for queue in queues),
        "consecutive_errors": max((queue.consecutive_errors for queue in queues), default=0),
        "consecutive_empty_polls": max((queue.empty_polls for queue in queues), default=0),
        "settled": status.settled,
        "pending_settlements": status.pending_settlements,
        "stale": status.stale,
        "queues": {queue.queue: _of_queue(asdict(queue)) for queue in queues},
    }


def _of_queue(fields: dict[str, object]) -> dict[str, object]:
    return {{"empty_polls": "consecutive_empty_polls"}.get(name, name): fields[name] for name in fields if name != "queue"}


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Pages that do not exist, and methods that a page does not have."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return _json(
            {"error": f"{request.method} {request.path}: {error.reason}", "pages": ["/health", "/ready"]}, error.status, allowed
        )


def _json(body: object, status: int, headers: dict[str, str] | None = None) -> web.Response:
    headers = {"Cache-Control": "no-store"} | (headers or {})
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=headers)
