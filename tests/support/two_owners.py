"""A database as deploy/README.md makes it: one role owns the schema of the jobs, another one a
table of an application, and neither is a superuser.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate

JOBS_OWNER, TABLE_OWNER, WORKER = (
    f"hybrid_runner_test_{os.getpid()}_{name}" for name in ("jobs_owner", "table_owner", "works")
)
PASSWORD = "only-for-tests"
MADE = f"""
CREATE ROLE {JOBS_OWNER} LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE {TABLE_OWNER} LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE {WORKER} LOGIN PASSWORD '{PASSWORD}' IN ROLE hybrid_runner_worker;
CREATE SCHEMA app AUTHORIZATION {TABLE_OWNER};
DROP SCHEMA hybrid_runner CASCADE;
CREATE SCHEMA hybrid_runner AUTHORIZATION {JOBS_OWNER};
GRANT USAGE ON SCHEMA app TO PUBLIC;
"""
TABLE = f"""
SET ROLE {TABLE_OWNER};
CREATE TABLE app.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status text DEFAULT 'waiting', worker text,
    result jsonb
);
RESET ROLE;
"""
MEMBER = f"GRANT {TABLE_OWNER} TO {JOBS_OWNER}"
"""What lets the owner of the jobs attach it."""


@dataclass(frozen=True)
class TwoOwners:
    """The database, and who comes into it."""

    superuser: str
    """The DSN of one; the others are DSNs too."""
    database: Connection
    """A session of the superuser."""

    @property
    def jobs_owner(self) -> str:
        return self._as(JOBS_OWNER)

    @property
    def table_owner(self) -> str:
        return self._as(TABLE_OWNER)

    @property
    def worker(self) -> str:
        return self._as(WORKER)

    def _as(self, role: str) -> str:
        url = urlsplit(self.superuser)
        return urlunsplit(url._replace(netloc=f"{role}:{PASSWORD}@{url.netloc.rpartition('@')[2]}"))


@asynccontextmanager
async def two_owners(dsn: str) -> AsyncIterator[TwoOwners]:
    """A migrated database, whose schema is made anew; the roles go with it."""
    database = await connect(dsn)
    made = TwoOwners(dsn, database)
    try:
        await database.execute(MADE)
        owner = await connect(made.jobs_owner)
        await migrate(owner)
        await owner.close()
        await database.execute(TABLE)
        yield made
    finally:
        for role in (WORKER, TABLE_OWNER, JOBS_OWNER):
            await database.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
        await database.close()
