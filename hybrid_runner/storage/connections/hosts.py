"""Connects to the first of several servers that a DSN names.

Each gets its share of the time, so that one that does not answer cannot use it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

_NEXT = (
    OSError,  # TimeoutError is one
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.ConnectionDoesNotExistError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)
"""Errors after which the next server is tried."""


async def first(dsn: str, timeout: float, **options: Any) -> Connection:
    """A connection to the first server that accepts it."""
    dsns = each(dsn)
    for one in dsns[:-1]:
        try:
            return await asyncpg.connect(one, timeout=timeout / len(dsns), **options)
        except _NEXT:
            continue
    return await asyncpg.connect(dsns[-1], timeout=timeout / len(dsns), **options)


def each(dsn: str) -> list[str]:
    """A DSN for each server that this one names, in order."""
    url = urlsplit(dsn)
    who, at, servers = url.netloc.rpartition("@")
    given = dict(parse_qsl(url.query))
    if "prefer-standby" in given.values():
        return [dsn]  # the driver decides when all have answered
    if "," in servers:
        return [
            urlunsplit(url._replace(netloc=f"{who}{at}{server}")) for server in servers.split(",")
        ]
    names, ports = (given.get(name, "").split(",") for name in ("host", "port"))
    if len(names) == 1:
        return [dsn]
    if len(ports) == 1:
        ports *= len(names)
    return [
        urlunsplit(url._replace(query=urlencode(given | {"host": name, "port": port})))
        for name, port in zip(names, ports, strict=True)
    ]
