"""The storage calls about which tables are attached: each runs the file of sql/queries that has its
name.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from hybrid_runner.jsontext import decode
from hybrid_runner.model.source_views import LeftOfSource, SourceRecord, SourceView
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.times import with_zone


async def record_source(on: Fetches, record: SourceRecord) -> bool:
    """Write down an attached table; False: it has got another number meanwhile."""
    return bool(await fetch(on, "record_source", *record))


async def reserve_source(on: Fetches, relation: str, kind: str) -> tuple[int, str]:
    """The number that a table has as a source, or will have, and its name as Postgres writes it."""
    [(number, name)] = await fetch(on, "reserve_source", relation, kind)
    return number, name


async def which_sources(on: Fetches, name: str, kind: str | None) -> list[tuple[int, str]]:
    """Number and kind of the sources that somebody means by the name of a table, or by a number."""
    return [(row[0], row[1]) for row in await fetch(on, "which_sources", name, kind)]


async def list_sources(on: Fetches) -> list[SourceView]:
    """The attached tables, in the order of their numbers."""
    return [_view(row) for row in await fetch(on, "list_sources")]


async def find_runner_owner(on: Fetches) -> str:
    """The role that owns the schema hybrid_runner."""
    return str(await fetch_value(on, "find_runner_owner"))


async def begin_detaching(on: Fetches, source: int) -> bool:
    """Nothing of this source is repaired from now on; False: there is no such source."""
    return bool(await fetch(on, "begin_detaching", source))


async def cancel_queued_of_source(on: Fetches, source: int, reason: str, most: int) -> int:
    """End queued jobs of a source that is detached; how many."""
    return int(await fetch_value(on, "cancel_queued_of_source", source, reason, most))


async def cancel_running_of_source(on: Fetches, source: int, reason: str) -> int:
    """Tell the running jobs of a source to stop; how many are told."""
    return int(await fetch_value(on, "cancel_running_of_source", source, reason))


async def left_of_source(on: Fetches, source: int) -> LeftOfSource:
    """What keeps a source from being detached."""
    [row] = await fetch(on, "left_of_source", source)
    return LeftOfSource(*row)


async def forget_source(on: Fetches, source: int) -> bool:
    """Take a source out of the list; False if it was attached again meanwhile."""
    return bool(await fetch_value(on, "forget_source", source))


def _view(row: asyncpg.Record) -> SourceView:
    columns: dict[str, Any] = {name: with_zone(value) for name, value in row.items()}
    for name in ("triggers", "disabled"):
        columns[name] = tuple(columns[name])
    return SourceView(**(columns | {"definition": decode(columns["definition"])}))
