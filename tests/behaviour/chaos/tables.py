"""What is in the tables in the end."""

from __future__ import annotations

import json

from tests.behaviour.chaos.orders import FOLLOWING
from tests.behaviour.chaos.postgres import Postgres
from tests.behaviour.chaos.records import Archived, Follower, Left

_ARCHIVE = """
SELECT id, (payload ->> 'n')::int AS n, kind, state::text, key, attempt, max_attempts, claim,
    errors::text, result::text
FROM hybrid_runner.archive
WHERE kind <> ALL ($1) AND source IS NULL
"""
_FOLLOWERS = """
SELECT f.id, f.kind, f.state::text, f.of, coalesce(f.id = ANY (a.followed_by), false) AS named,
    f.claim, f.said
FROM (
    SELECT id, kind, state, coalesce(payload ->> 'of', payload ->> 'id')::bigint AS of,
        (payload ->> 'claim')::bigint AS claim, payload ->> 'state' AS said
    FROM hybrid_runner.archive
    WHERE kind = ANY ($1)
) AS f
LEFT JOIN hybrid_runner.archive AS a ON a.id = f.of
"""
_LEFT = """
SELECT id, (payload ->> 'n')::int AS n,
    format(
        '%s, %s, attempt %s, claim %s, worker %s, due %s, cancelling asked %s',
        kind, state, attempt, claim, worker_id, run_at, cancel_requested_at
    ) AS what
FROM hybrid_runner.jobs WHERE source IS NULL ORDER BY run_at
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
        for row in await postgres.fetch(_ARCHIVE, FOLLOWING)
    ]


async def read_followers(postgres: Postgres) -> list[Follower]:
    """All jobs that follow others."""
    return [Follower(*row) for row in await postgres.fetch(_FOLLOWERS, FOLLOWING)]


async def read_left(postgres: Postgres) -> list[Left]:
    """All jobs that have not ended."""
    return [Left(*row) for row in await postgres.fetch(_LEFT)]
