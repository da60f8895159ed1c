"""The Postgres under test: the one named, else one in a container, else an embedded one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from hybrid_runner.embedded import EmbeddedPostgres, use_embedded
from tests.support import engine

DSN_VARIABLE = "HYBRID_RUNNER_TEST_DSN"
SERVER_VARIABLE = "HYBRID_RUNNER_TEST_SERVER"
"""`container` or `embedded`: that one, whatever else is there."""
IMAGE = "postgres:18"
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private
ENOUGH = 4 * 1024**3
QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "autovacuum_naptime": "20d",
}
"""Settings of a server whose data nobody will miss. Autovacuum would change plans and counts in the
middle of a test, and all tests may take longer than an hour; it is not off, which is complained of.
"""


@dataclass(frozen=True)
class Server:
    """A running Postgres; the role in the DSN is a superuser."""

    dsn: str
    stop: Callable[[], None]

    def dsn_of(self, database: str) -> str:
        """The DSN of another database of this server."""
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{database}"))

    @contextmanager
    def administrator(self) -> Iterator[psycopg.Connection]:
        """A connection to the first database."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            yield connection


@dataclass
class Databases:
    """Makes and drops databases; one connection for all of it."""

    server: Server
    connection: psycopg.Connection
    made: int = field(default=0, init=False)

    def create(self, template: str | None = None) -> str:
        """The name of a new database, a copy of the template."""
        self.made += 1
        name = f"hybrid_runner_test_{os.getpid()}_{self.made}"
        copied_from = (
            sql.SQL("TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
        )
        self.connection.execute(
            sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), copied_from)
        )
        return name

    def drop(self, name: str) -> None:
        """Drop it, whoever is still connected."""
        self.connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    @contextmanager
    def fresh(self, template: str | None = None) -> Iterator[str]:
        """The DSN of a new database, which is dropped afterwards."""
        name = self.create(template)
        try:
            yield self.server.dsn_of(name)
        finally:
            self.drop(name)


@dataclass(frozen=True)
class Choice:
    """Which server it will be and why, known before it runs."""

    what: str
    start: Callable[[], Server]


def is_shared() -> bool:
    """Whether it will be a server that other processes of the same run use too."""
    return not os.environ.get(SERVER_VARIABLE) and bool(os.environ.get(DSN_VARIABLE))


def choose_server() -> Choice:
    """Look at the environment; nothing is started yet."""
    match os.environ.get(SERVER_VARIABLE):
        case "container":
            return Choice(f"{IMAGE} in a container", _start_container)
        case "embedded":
            return Choice(f"an embedded one ({SERVER_VARIABLE})", _start_embedded)
        case "" | None:
            return _first_that_is_there()
        case other:
            raise pytest.UsageError(
                f"{SERVER_VARIABLE} is {other!r}: say container or embedded, or leave it out"
            )


def _first_that_is_there() -> Choice:
    if dsn := os.environ.get(DSN_VARIABLE):
        return Choice(f"the server named by {DSN_VARIABLE}", lambda: Server(dsn, lambda: None))
    if trouble := _trouble_with_containers():
        return Choice(f"an embedded one (SKIPPED: testcontainers, {trouble})", _start_embedded)
    return Choice(f"{IMAGE} in a container", _start_container)


def _start_embedded() -> Server:
    stack = contextlib.ExitStack()
    postgres = stack.enter_context(embedded())
    return Server(postgres.dsn, stack.close)


@contextmanager
def embedded(settings: Mapping[str, str] = QUICK) -> Iterator[EmbeddedPostgres]:
    """A cluster of its own for as long as it is needed, in memory where there is enough of it: a
    new database is 300 files.
    """
    place = str(MEMORY) if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH else None
    with tempfile.TemporaryDirectory(
        prefix="hybrid-runner-tests-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        postgres = use_embedded(Path(folder) / "postgres", settings=settings)
        try:
            yield postgres
        finally:
            postgres.stop()


def _trouble_with_containers() -> str | None:
    if not engine.answers(os.environ.get("DOCKER_HOST") or engine.USUAL):
        return "no container engine answers"
    import docker  # noqa: PLC0415 - takes a third of a second, and often nothing needs it
    from docker.errors import DockerException  # noqa: PLC0415

    try:
        with contextlib.closing(docker.from_env(timeout=60)) as client:
            if not client.images.list(name=IMAGE):
                client.images.pull(IMAGE)
    except (DockerException, OSError) as error:
        return f"the engine has no image {IMAGE}: {' '.join(str(error).split())[:120]}"
    return None


def _start_container() -> Server:
    os.environ.setdefault(
        "TESTCONTAINERS_RYUK_DISABLED", "true"
    )  # we stop it ourselves; the reaper is one more image
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415

    settings = " ".join(f"-c {name}={value}" for name, value in QUICK.items())
    container = PostgresContainer(
        IMAGE,
        username="hybrid_runner",
        password="hybrid_runner",
        dbname="hybrid_runner",
        driver=None,
    ).with_command(f"postgres {settings}")
    container.with_tmpfs_mount("/var/lib/postgresql")  # in memory: a new database is 300 files
    container.start()
    return Server(container.get_connection_url(), container.stop)
