"""The site's form, as it was before any worker of ours: it inserts a row, and looks at it later.
Its login may do nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

TABLE = Path(__file__).with_name("table.sql").read_text(encoding="utf-8")


class Form:
    """One connection, by the role of the site."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, dsn: str) -> Form:
        return cls(await asyncpg.connect(dsn, server_settings={"role": "site_form"}))

    async def close(self) -> None:
        await self._connection.close()

    async def ask(self, email: str, url: str) -> UUID:
        """Somebody wants to know about that site."""
        made: UUID = await self._connection.fetchval(
            "INSERT INTO site_analysis.audits (requested_email, website_url)"
            " VALUES ($1, $2) RETURNING id",
            email,
            url,
        )
        return made

    async def audits(self) -> list[dict[str, Any]]:
        """The newest last."""
        rows = await self._connection.fetch(
            "SELECT * FROM (SELECT * FROM site_analysis.audits ORDER BY created_at DESC LIMIT 20)"
            " AS newest ORDER BY created_at"
        )
        return [dict(row) for row in rows]


async def create_table(dsn: str) -> None:
    """As its owner."""
    connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn)
    try:
        await connection.execute(TABLE)
    finally:
        await connection.close()
