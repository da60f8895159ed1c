"""A connection that asks about the server's own types once in the life of the process.

The driver asks each new session about arrays and the like, before the first statement that has
one: the question takes the server longer than most statements of a worker do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

_FIRST_OF_INSTALLATION = 10_000
"""Types below this number are the same in every Postgres."""
_MOST = 100
_known: dict[frozenset[int], Any] = {}


class _NotAsked(NamedTuple):
    """Stands in for the statement that would have asked; the driver reads whether it has a name,
    that is whether it has left the one without a name alone.
    """

    name: str = "not asked"


class TypesKnown(Connection):
    """Does what asyncpg's does. A driver that no longer calls this asks each time."""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float) -> Any:
        wanted = frozenset(typeoids)
        if wanted in _known:
            return _known[wanted], _NotAsked()
        ask: Any = super()
        types, statement = await ask._introspect_types(typeoids, timeout)  # noqa: SLF001  # overridden here
        if max(wanted, default=0) < _FIRST_OF_INSTALLATION and len(_known) < _MOST:
            _known[wanted] = types
        return types, statement
