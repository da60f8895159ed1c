"""Runs a statement of sql/queries on whatever can fetch."""

from __future__ import annotations

from typing import Any, Protocol

import asyncpg

from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query

Rows = list[asyncpg.Record]


class Fetches(Protocol):
    """Runs statements: a LazyConnection, a Pool, or the caller's own asyncpg connection."""

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement and return its rows."""


async def fetch(on: Fetches, name: str, *arguments: Any) -> Rows:
    """Run sql/queries/<name>.sql and return its rows; errors are RunnerErrors."""
    try:
        return await on.fetch(query(name), *arguments)
    except Exception as error:
        raise translate(error) from error


async def fetch_value(on: Fetches, name: str, *arguments: Any) -> Any:
    """Run sql/queries/<name>.sql; the first column of the first row, None without rows."""
    rows = await fetch(on, name, *arguments)
    return rows[0][0] if rows else None
