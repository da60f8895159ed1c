"""The tables of rights in docs/security.md, written from a migrated database: `python -m
tests.docs.security_page`.
"""

from __future__ import annotations

import asyncio
import re

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.docs.blocks import ROOT
from tests.support.server import embedded
from tools.roles import make_groups

PAGE = ROOT / "docs" / "security.md"
TABLES = re.compile(r"(?<=<!-- rights -->\n).*?(?=<!-- end of rights -->)", re.DOTALL)
ROLES = ("producer", "worker", "reader")
_ORDER = ("SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "EXECUTE")
# Partitions and doorbells come and go.
_RELATIONS = """
SELECT c.relname::text AS name, a.grantee::regrole::text AS grantee, a.privilege_type AS right, NULL AS columns
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
WHERE c.relnamespace = 'hybrid_runner'::regnamespace AND c.relkind::text = ANY ($1) AND NOT c.relispartition
    AND c.relname !~ '^doorbell_'
UNION ALL
SELECT
    c.relname::text, x.grantee::regrole::text, x.privilege_type,
    string_agg('`' || t.attname || '`', ', ' ORDER BY t.attnum)
FROM pg_class AS c JOIN pg_attribute AS t ON t.attrelid = c.oid CROSS JOIN LATERAL aclexplode(t.attacl) AS x
WHERE c.relnamespace = 'hybrid_runner'::regnamespace AND c.relkind::text = ANY ($1) AND NOT c.relispartition
GROUP BY 1, 2, 3
"""
_FUNCTIONS = """
SELECT p.proname::text AS name, a.grantee::regrole::text AS grantee, a.privilege_type AS right, NULL AS columns
FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
WHERE p.pronamespace = 'hybrid_runner'::regnamespace
"""
_OWNER = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'hybrid_runner'"


class GrantedToOthers(Exception):
    """Somebody has a right who is none of the roles."""


async def tables(connection: Connection) -> str:
    """All of them, as they should be."""
    parts = [
        await _table(connection, "table or view", _RELATIONS, ["r", "p", "v"]),
        await _table(connection, "sequence", _RELATIONS, ["S"]),
        await _table(connection, "function", _FUNCTIONS),
    ]
    return "\n" + "\n".join(parts) + "\n"


async def _table(connection: Connection, head: str, sql: str, *arguments: object) -> str:
    rights: dict[str, dict[str, set[tuple[str, str | None]]]] = {}
    owner = await connection.fetchval(_OWNER)
    for row in await connection.fetch(sql, *arguments):
        role = row["grantee"].removeprefix("hybrid_runner_")
        of_object = rights.setdefault(row["name"], {})
        if row["grantee"] == owner:
            continue
        if role not in ROLES:
            raise GrantedToOthers(f"{row['grantee']} has {row['right']} on {row['name']}")
        of_object.setdefault(role, set()).add((row["right"], row["columns"]))
    lines = [f"| {head} | {' | '.join(ROLES)} |", "|---" * (len(ROLES) + 1) + "|"]
    for name, by_role in sorted(rights.items()):
        cells = (_cell(by_role.get(role, set())) for role in ROLES)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rights: set[tuple[str, str | None]]) -> str:
    ordered = sorted(rights, key=lambda each: _ORDER.index(each[0]))
    words = (right if columns is None else f"{right} ({columns})" for right, columns in ordered)
    return ", ".join(words) or "-"


async def _write() -> None:
    with embedded() as postgres:
        connection = await connect(postgres.dsn)
        await make_groups(connection)
        await migrate(connection)
        written = await tables(connection)
        await connection.close()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLES.sub(lambda _: written, page), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_write())
