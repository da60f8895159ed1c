"""Runs one of sql/queries on whatever can fetch; what Postgres says against it becomes an error of ours."""

from __future__ import annotations

from typing import Any

from hybrid_runner.storage.connections import Fetches, Rows
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import query


async def fetch(on: Fetches, name: str, *arguments: Any) -> Rows:
    """The rows of a query."""
    try:
        return await on.fetch(query(name), *arguments)
    except Exception as error:
        raise translate(error) from error


async def fetch_value(on: Fetches, name: str, *arguments: Any) -> Any:
    """The first column of its first row; None without rows."""
    rows = await fetch(on, name, *arguments)
    return rows[0][0] if rows else None
