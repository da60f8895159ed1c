"""What is in the tables in the end."""

from __future__ import annotations

import json

from tests.behaviour.chaos.postgres import Postgres
from tests.behaviour.chaos.records import Archived, Left

_ARCHIVE = """
SELECT id, (payload ->> 'n')::int AS n, kind, state::text, key, attempt, max_attempts, claim,
    errors::text, result::text
FROM hybrid_runner.archive
"""
_LEFT = """
SELECT id, (payload ->> 'n')::int AS n,
    format(
        '%s, %s, attempt %s, claim %s, worker %s, due %s, cancelling asked %s',
        kind, state, attempt, claim, worker_id, run_at, cancel_requested_at
    ) AS what
FROM hybrid_runner.jobs ORDER BY run_at
"""


async def read_archive(postgres: Postgres) -> list[Archived]:
    """All jobs that ended."""
    return [
        Archived(
            id=row["id"],
            n=row["n"],
            kind=row["kind"],
            state=row["state"],
            key=row["key"],
            attempt=row["attempt"],
            max_attempts=row["max_attempts"],
            claim=row["claim"],
            errors=json.loads(row["errors"] or "[]"),
            result=json.loads(row["result"] or "null"),
        )
        for row in await postgres.fetch(_ARCHIVE)
    ]


async def read_left(postgres: Postgres) -> list[Left]:
    """All jobs that have not ended."""
    return [Left(*row) for row in await postgres.fetch(_LEFT)]
