"""The names by which pages may be asked for.

A browser of this machine can be made to ask 127.0.0.1 under any name: whoever owns the name points
it here, and the browser takes their page and ours for one site. What it then sends as Host is that
name.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_LOCAL = "localhost"


class HostCheck:
    """`bound` is the addresses at which the pages listen, `names` the setting `http_hosts` and
    `url` the setting `http_url`, whose name is one of them.
    """

    def __init__(self, bound: list[str], names: str | None = None, url: str | None = None) -> None:
        self._loopback_only = bool(bound) and all(_is_loopback(address) for address in bound)
        self._names = {name.strip().lower() for name in (names or "").split(",")} - {""}
        if url is not None and (self._loopback_only or self._names):
            self._names.add(urlsplit(url).hostname or "")

    def allows(self, header: str) -> bool:
        """Whether the value of a Host header, with or without a port, names these pages."""
        if not self._loopback_only and not self._names:
            return True
        name = _without_port(header.strip().lower())
        if name in self._names or name == _LOCAL:
            return True
        # An address is no name that could be pointed elsewhere.
        return _is_loopback(name) if self._loopback_only else _is_address(name)

    def middleware(self) -> Middleware:
        """Refuses requests for other hosts: 421. Whoever sends no Host is no browser."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            for header in request.headers.getall("Host", []):
                if not self.allows(header):
                    raise web.HTTPMisdirectedRequest(
                        reason=(
                            "these pages are not known by this name: set HYBRID_RUNNER_HTTP_HOSTS"
                            " to the name that a proxy passes on"
                        )
                    )
            return await handler(request)

        return check


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].removesuffix(".")


def _is_loopback(name: str) -> bool:
    return _is_address(name) and ip_address(name).is_loopback


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
