"""What tests ask for, and the table that they ask it for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybrid_runner.attach.checking import Checked, check
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Columns, SourceDefinition, Words
from hybrid_runner.storage.connections.connection import Connection

AUDITS = """
CREATE TABLE public.audits (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    website_url text,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'stalled')),
    raw_data jsonb,
    report bytea,
    urgency integer,
    processing_started_at timestamptz,
    processing_worker_id text,
    last_heartbeat timestamptz,
    retry_count integer,
    created_at timestamptz NOT NULL DEFAULT now()
)
"""
WORDS = Words(queued="pending", running="processing", completed="completed", failed="failed")
COLUMNS = Columns(
    status="status",
    worker_id="processing_worker_id",
    started_at="processing_started_at",
    heartbeat_at="last_heartbeat",
    retry_count="retry_count",
    result="raw_data",
)
DEFINITION = SourceDefinition(
    table="audits", kind="audit", when="status = 'pending'", words=WORDS, columns=COLUMNS
)


def asked(**changes: Any) -> SourceDefinition:
    """What is asked for of the table audits, changed."""
    return replace(DEFINITION, **changes)


async def checked(
    database: Connection, definition: SourceDefinition = DEFINITION, *, for_script: bool = False
) -> Checked:
    """What `check` makes of it, in a transaction that is rolled back."""
    transaction = database.transaction()
    await transaction.start()
    try:
        return await check(database, definition, 1, for_script=for_script)
    finally:
        await transaction.rollback()


async def refusal(
    database: Connection, definition: SourceDefinition, *, for_script: bool = False
) -> str:
    """Why it is refused: one line, after which all is as it was, though the transaction stays."""
    before = await _catalogue(database)
    async with database.transaction():
        with pytest.raises(ConfigurationError) as refused:
            await check(database, definition, 1, for_script=for_script)
    assert await _catalogue(database) == before
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) < 600
    return said


async def _catalogue(database: Connection) -> Any:
    return await database.fetchrow(
        "SELECT (SELECT array_agg(oid ORDER BY oid) FROM pg_class) AS classes,"
        " (SELECT array_agg(oid ORDER BY oid) FROM pg_proc) AS functions,"
        " (SELECT array_agg(oid ORDER BY oid) FROM pg_trigger) AS triggers,"
        " (SELECT array_agg(id) FROM hybrid_runner.sources) AS sources,"
        " current_setting('search_path') AS search_path, current_user"
    )
