"""How pages answer in JSON."""

from __future__ import annotations

import orjson
from aiohttp import web


def as_json(body: object, status: int, headers: dict[str, str] | None = None) -> web.Response:
    """One answer, which nobody keeps."""
    headers = {"Cache-Control": "no-store"} | (headers or {})
    return web.Response(
        body=orjson.dumps(body), status=status, content_type="application/json", headers=headers
    )
