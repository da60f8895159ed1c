"""Waiting for something to be so, when it has no signal of its own.

Whoever waits in vain is told for what, and what there was instead.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar, overload

from hybrid_runner.storage.connections.connection import Connection

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds: far more than anything takes that works, and less than the time-out of a test, which
tells nothing.
"""
_PAUSE = 0.005


@overload
async def until(
    look: Callable[[], Awaitable[T]],
    fits: Callable[[T], Any] = ...,
    *,
    patience: float = ...,
    what: str = ...,
) -> T: ...
@overload
async def until(
    look: Callable[[], T], fits: Callable[[T], Any] = ..., *, patience: float = ..., what: str = ...
) -> T: ...
async def until(
    look: Callable[[], Any],
    fits: Callable[[Any], Any] = bool,
    *,
    patience: float = PATIENCE,
    what: str = "",
) -> Any:
    """What a look brings, once that fits."""
    seen: Any = "(the first look did not end)"
    try:
        async with asyncio.timeout(patience) as limit:
            while True:
                found = look()
                seen = await found if inspect.isawaitable(found) else found
                if fits(seen):
                    break
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        if not limit.expired():
            raise
        _give_up(what or _source(look), seen, patience)
    return seen


def wait_until(
    look: Callable[[], T],
    fits: Callable[[T], Any] = bool,
    *,
    patience: float = PATIENCE,
    what: str = "",
) -> T:
    """`until` for code without an event loop."""
    end = time.monotonic() + patience
    while not fits(seen := look()):
        if time.monotonic() > end:
            _give_up(what or _source(look), seen, patience)
        time.sleep(_PAUSE)
    return seen


async def until_fetched(
    database: Connection,
    query: str,
    value: object,
    *arguments: object,
    patience: float = PATIENCE,
) -> None:
    """Return once that is what the query brings."""

    async def look() -> object:
        return await database.fetchval(query, *arguments)

    await until(look, equals(value), patience=patience, what=f"{value!r} of {query} {arguments}")


async def until_blocked(observer: Connection, blocked: Connection) -> None:
    """Return once that session waits for another one's lock."""
    query = "SELECT cardinality(pg_blocking_pids($1)) > 0"
    await until_fetched(observer, query, True, blocked.get_server_pid())


def equals(value: object) -> Callable[[Any], bool]:
    return lambda seen: bool(seen == value)


def differs_from(value: object) -> Callable[[Any], bool]:
    return lambda seen: bool(seen != value)


def at_least(value: Any) -> Callable[[Any], bool]:
    return lambda seen: bool(seen >= value)


def has(part: object) -> Callable[[Any], bool]:
    return lambda seen: part in seen


def _source(look: Callable[[], Any]) -> str:
    try:
        return " ".join(inspect.getsource(look).split())
    except OSError:
        return repr(look)


def _give_up(what: str, seen: object, patience: float) -> NoReturn:
    raise AssertionError(f"waited {patience:g} s for: {what[:500]}\nlast seen: {str(seen)[:500]!r}")
