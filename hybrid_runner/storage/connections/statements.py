"""Runs a statement of sql/queries on whatever can fetch."""

from __future__ import annotations

from typing import Any, Protocol

import asyncpg

from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query

Rows = list[asyncpg.Record]


class Fetches(Protocol):
    """Whatever can run a statement: a Link, a pool, or the caller's own asyncpg connection."""

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement and return its rows."""


async def fetch(on: Fetches, name: str, *arguments: Any) -> Rows:
    """The rows of one of sql/queries; what Postgres says against it becomes an error of ours."""
    try:
        return await on.fetch(query(name), *arguments)
    except Exception as error:
        raise translate(error) from error


async def fetch_value(on: Fetches, name: str, *arguments: Any) -> Any:
    """The first column of its first row; None without rows."""
    rows = await fetch(on, name, *arguments)
    return rows[0][0] if rows else None
