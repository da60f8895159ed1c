"""The roles that deploy/roles.sql makes, for a server on which it is not run as a whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from hybrid_runner.storage.connections.connection import Connection, connect

SCRIPT: Final = Path(__file__).resolve().parent.parent / "deploy" / "roles.sql"
_ASKED: Final = re.compile(r"(?ms)^SELECT format\('CREATE ROLE %I NOLOGIN'.*?(?=^\\gexec)")


async def make_groups(connection: Connection) -> None:
    """Make those of the roles without a login that are not there."""
    [asked] = _ASKED.findall(SCRIPT.read_text(encoding="utf-8"))
    for (statement,) in await connection.fetch(asked):
        await connection.execute(statement)


async def make_groups_of(dsn: str) -> None:
    """The same by a connection of its own."""
    connection = await connect(dsn)
    await make_groups(connection)
    await connection.close()
