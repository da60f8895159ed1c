"""What makes two services one request: the same address, headers and redirects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import orjson
from yarl import URL

from hybrid_runner.model.monitors import Service

GroupKey: TypeAlias = tuple[str, bytes, int]


def address_key(url: str) -> str:
    """The URL without what makes no difference: case of scheme and host, the default port, the
    fragment, an empty path. A URL that cannot be read is itself.
    """
    try:
        parsed = URL(url).with_fragment(None)
        if parsed.is_default_port():
            parsed = parsed.with_port(None)
        if parsed.raw_path == "/" and not parsed.raw_query_string:
            return f"{parsed.origin()}/"
        return str(parsed)
    except (ValueError, TypeError):
        return url


def group_key(service: Service) -> GroupKey:
    """Services with equal keys share one request. Case of the names of headers counts."""
    try:
        headers = orjson.dumps(service.headers or {}, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        headers = repr(service.headers).encode("utf-8", "replace")
    return (address_key(service.url), headers, service.follow)


def grouped(
    services: Iterable[Service], key_of: Callable[[Service], GroupKey] = group_key
) -> list[list[Service]]:
    """Services by request, in the order of the first of each."""
    groups: dict[GroupKey, list[Service]] = {}
    for service in services:
        groups.setdefault(key_of(service), []).append(service)
    return list(groups.values())
