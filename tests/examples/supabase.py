"""A server with the roles that Supabase has: whoever owns the tables and the jobs is no superuser,
and the application's login can do nothing by itself.
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from examples.execution_jobs.application import ROLES
from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from tests.support.server import Databases, Server, embedded
from tools.roles import make_groups_of

OWNER = "supabase_owner"
LOGINS = f"""
CREATE ROLE {OWNER} LOGIN CREATEROLE CREATEDB BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT IN ROLE anon, authenticated, service_role;
CREATE ROLE site_form NOLOGIN;
GRANT site_form TO authenticator;
"""
WORKER = "CREATE ROLE jobs_worker LOGIN IN ROLE hybrid_runner_worker, service_role"


@dataclass(frozen=True)
class Supabase:
    """One database of it."""

    superuser: str
    """The DSN by which nothing is done but preparing a test and looking into it."""

    @property
    def owner(self) -> str:
        """Owns the database, the tables and the schema of the jobs."""
        return as_role(self.superuser, OWNER)

    @property
    def application(self) -> str:
        """May become `anon`, `authenticated` or another role of applications, and is nothing."""
        return as_role(self.superuser, "authenticator")

    @property
    def worker(self) -> str:
        """What workers log in as."""
        return as_role(self.superuser, "jobs_worker")


@contextmanager
def supabase_server() -> Iterator[tuple[Databases, str]]:
    """The server, and the name of a migrated database of the owner's."""
    with embedded() as postgres:
        server = Server(postgres.dsn, lambda: None)
        with server.administrator() as connection:
            connection.execute(ROLES.encode())
            connection.execute(LOGINS.encode())
            databases = Databases(server, connection)
            template = databases.create()
            connection.execute(f"ALTER DATABASE {template} OWNER TO {OWNER}".encode())
            asyncio.run(make_groups_of(server.dsn))
            asyncio.run(_migrate(as_role(server.dsn_of(template), OWNER)))
            connection.execute(WORKER.encode())
            yield databases, template


@contextmanager
def supabase_database(server: tuple[Databases, str]) -> Iterator[Supabase]:
    """A database of a test's own."""
    databases, template = server
    with databases.fresh(template) as dsn:
        name = urlsplit(dsn).path.removeprefix("/")
        databases.connection.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}".encode())
        yield Supabase(dsn)


async def _migrate(dsn: str) -> None:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()


def as_role(dsn: str, role: str) -> str:
    """The same database by that login."""
    url = urlsplit(dsn)
    return urlunsplit(url._replace(netloc=f"{role}@{url.netloc.rpartition('@')[2]}"))


def psql(dsn: str, statement: str, role: str | None = None) -> str:
    """What psql prints of it: rows as lines, columns with a bar between."""
    statements = ["-c", f"SET ROLE {role}"] if role else []
    statements += ["-c", statement]
    done = subprocess.run(
        [*shlex.split(psql_command()), dsn, "-qAtX", "-v", "ON_ERROR_STOP=1", *statements],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
