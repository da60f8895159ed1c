"""GET /metrics: made from memory, in the pages' own thread; no database and no busy loop can hold
it up.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hybrid_runner.telemetry.metrics.exposition import CONTENT_TYPE, as_text
from hybrid_runner.telemetry.metrics.values import MetricValues


def metrics_route(read: Callable[[], MetricValues]) -> web.RouteDef:
    """The page for Prometheus."""

    async def metrics(_request: web.Request) -> web.Response:
        body = as_text(read()).encode()
        return web.Response(
            body=body, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
        )

    return web.get("/metrics", metrics)
