"""Tables of applications, attached without the command: what the statements of a source make."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hybrid_runner.attach.rendering import attaching
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.sources import (
    LARGEST_ROW,
    Columns,
    ColumnType,
    Expression,
    Source,
    SourceDefinition,
    Words,
)
from hybrid_runner.storage import source_calls
from hybrid_runner.storage.connections.connection import Connection

AUDITS = """
CREATE TABLE IF NOT EXISTS public.audits (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    website_url text,
    status text DEFAULT 'pending',
    raw_data jsonb,
    error text,
    processing_started_at timestamptz,
    processing_worker_id text,
    last_heartbeat timestamptz,
    retry_count integer,
    finished_at timestamptz
)
"""
WORDS = Words(
    queued="pending",
    running="processing",
    completed="completed",
    failed="failed",
    cancelled="failed",
    snoozed="processing",
)
COLUMNS = Columns(
    status="status",
    worker_id="processing_worker_id",
    started_at="processing_started_at",
    heartbeat_at="last_heartbeat",
    retry_count="retry_count",
    finished_at="finished_at",
    result="raw_data",
    error="error",
)


async def read_row(database: Connection, claim: Claim) -> str | None:
    """The row of a claimed job as its handler would be given it."""
    assert claim.source is not None
    assert claim.row_key is not None
    rows = await source_calls.read_rows(database, claim.source, [claim.row_key], LARGEST_ROW)
    return rows[claim.row_key][0] if rows else None


async def attach_audits(database: Connection, kind: str = "audit") -> int:
    """Make the table audits and attach it, by a superuser; returns the source's number."""
    await database.execute(AUDITS)
    return (await attach_table(database, "public.audits", kind=kind, columns=COLUMNS)).number


async def attach_table(
    database: Connection,
    table: str,
    *,
    kind: str = "audit",
    words: Words = WORDS,
    columns: Columns | None = None,
    key: tuple[str, ...] = ("id",),
    when: str = "{row}.status::text = 'pending'",
    **more: Any,
) -> Source:
    """Attach what was checked by eye; `{row}` in the condition is the row. A second time, it
    replaces.
    """
    columns = columns or Columns(status="status")
    types = await _types(database, table)
    named = {name: value for name, value in vars(columns).items() if value is not None}
    for name in {"cancel", "priority", "run_at"} & more.keys():
        more[name] = expression(more[name])
    definition = SourceDefinition(table=table, kind=kind, when=when, words=words, columns=columns)
    source = Source(
        number=await _number(database, definition),
        **await _names(database, table),
        kind=kind,
        queue=more.pop("queue", "default"),
        key=tuple(types[name] for name in key),
        condition=expression(when),
        words=words,
        status=types[named.pop("status")],
        columns={name: types[column] for name, column in named.items()},
        definition=definition,
        **more,
    )
    async with database.transaction():
        for statement in attaching(source):
            await database.execute(statement)
    return source


def expression(over: str) -> Expression:
    """`{row}.status` with both aliases."""
    return Expression(over.format(row="new"), over.format(row="old"))


async def _number(database: Connection, definition: SourceDefinition) -> int:
    number: int = await database.fetchval(
        "INSERT INTO hybrid_runner.sources"
        " (relation, relation_name, kind, queue, owner, definition)"
        " VALUES ($1::text::regclass, $1::text::regclass::text, $2, 'default', current_user, $3)"
        " ON CONFLICT (relation, kind) DO UPDATE SET"
        " relation_name = excluded.relation_name, made_at = clock_timestamp() RETURNING id",
        definition.table,
        definition.kind,
        json.dumps(asdict(definition)),
    )
    return number


async def _names(database: Connection, table: str) -> dict[str, Any]:
    found = await database.fetchrow(
        "SELECT n.nspname AS schema, c.relname AS table, c.relowner::regrole::text AS owner,"
        " o.nspowner::regrole::text AS runner_owner,"
        " c.relkind = 'p' OR c.relispartition OR EXISTS ("
        "     SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid)) AS by_row"
        " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " JOIN pg_namespace AS o ON o.nspname = 'hybrid_runner' WHERE c.oid = $1::text::regclass",
        table,
    )
    assert found is not None
    # regrole prints names as SQL would have them
    return {
        name: value.strip('"').replace('""', '"') if "owner" in name else value
        for name, value in dict(found).items()
    }


async def _types(database: Connection, table: str) -> dict[str, ColumnType]:
    found = await database.fetch(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN b.typtype = 'e'"
        " THEN 'enum' ELSE b.typname END, a.attnotnull"
        " FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid"
        " JOIN pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END"
        " WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped",
        table,
    )
    return {row[0]: ColumnType(*row) for row in found}
