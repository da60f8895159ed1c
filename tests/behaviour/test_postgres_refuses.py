"""Postgres is there and says no for a while: no connections left, read-only, a changed password, a
full disk, locked rows.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from hybrid_runner import Job
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.cli.running import ROOT, worker
from tests.support.bells import seen
from tests.support.busy import COMPLETED, INSERT, LEFT, QUICK_BEATS, App, ended, hears_again
from tests.support.faults import OwnServer, end_sessions, own_server
from tests.support.outside import missing
from tests.support.waiting import until
from tests.support.working import working

pytestmark = pytest.mark.usefixtures("short_pauses")

LOST_APP = "tests.behaviour.lost_app:app"


@asynccontextmanager
async def a_role(database: Connection, dsn: str) -> AsyncIterator[tuple[str, str]]:
    """A worker's role, not a superuser: its name, and the DSN that logs in as it."""
    name = f"hybrid_runner_test_role_{os.getpid()}"
    await database.execute(
        f"CREATE ROLE {name} LOGIN PASSWORD 'right' IN ROLE hybrid_runner_worker,"
        " hybrid_runner_producer"
    )
    url = urlsplit(dsn)
    try:
        yield name, urlunsplit(url._replace(netloc=f"{name}:right@{url.netloc.rpartition('@')[2]}"))
    finally:
        await end_sessions(database, "%", name)
        await database.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER")
        await database.execute(f"DROP OWNED BY {name}")
        await database.execute(f"DROP ROLE {name}")


@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_too_many_connections_at_the_start_are_waited_for(
    limit: int, dsn: str, database: Connection
) -> None:
    """A9: none is free, or only the first ones are."""
    async with a_role(database, dsn) as (role, limited):
        await database.execute(f"ALTER ROLE {role} CONNECTION LIMIT {limit}")
        settings = {"HYBRID_RUNNER_DSN": limited, "HYBRID_RUNNER_LOG_LEVEL": "info"}
        async with worker(LOST_APP, cwd=ROOT, **settings) as process:
            line = await process.says("too many connections for role")
            assert line["level"] == "warning"
            await database.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
            await process.says("listening on")
            assert await process.ends() == 0


async def test_too_many_connections_after_a_loss_are_waited_for(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A9"""
    async with a_role(database, dsn) as (role, limited):
        app = App(limited, **QUICK_BEATS)
        async with working(app.runner) as worker:
            await database.fetch(INSERT, "hold", 3)
            await until(lambda: app.holding == 3)
            await database.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")
            await end_sessions(database, role=role)
            app.let_go.set()
            await until_said(
                caplog,
                "too many connections for role",
                "claiming",
                "listener",
                "heartbeat",
                "settling",
            )
            assert worker.status().pending_settlements == 3
            await database.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
            await ended(worker, 3)
            await hears_again(worker, database, 4)
            assert app.ran_once
            assert not app.cancelled


async def until_said(caplog: pytest.LogCaptureFixture, what: str, *by: str) -> None:
    """Until each of these has warned of it."""

    def warned(one: str) -> bool:
        return any(
            r.levelname == "WARNING" and one in r.getMessage() and what in r.getMessage()
            for r in caplog.records
        )

    await until(lambda: all(warned(one) for one in by))


async def test_while_the_server_is_read_only_nothing_is_claimed_and_outcomes_are_kept(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A9: as in a failover; a session that began read-only does not stay so."""
    name = urlsplit(dsn).path[1:]
    app = App(dsn, **QUICK_BEATS)
    async with working(app.runner) as worker:
        await database.fetch(INSERT, "hold", 3)
        await until(lambda: app.holding == 3)
        await database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await end_sessions(database)
        await database.fetch(INSERT, "brief", 5)  # this session is older
        app.let_go.set()
        await until_said(caplog, "read-only transaction", "claiming", "settling", "heartbeat")
        assert worker.status().pending_settlements == 3
        assert len(app.began) == 3
        await database.execute(
            f"ALTER DATABASE {name} RESET default_transaction_read_only"
        )  # no session is ended now
        await ended(worker, 8)
        await hears_again(worker, database, 9)
        assert app.ran_once
        assert not app.cancelled
        assert await database.fetchval(COMPLETED) == 9


async def test_a_client_does_not_keep_a_session_that_began_read_only(
    dsn: str, database: Connection
) -> None:
    """A client that enqueues is refused in the same ways."""
    name = urlsplit(dsn).path[1:]
    app = App(dsn)
    await database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with app.runner:
        with pytest.raises(Exception, match="read-only"):
            await app.runner.enqueue("brief", {})
        await database.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await app.runner.enqueue("brief", {})


PASSWORDS = """
local all hybrid_runner trust
local all all scram-sha-256
"""


async def test_a_login_that_is_refused_for_a_while_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A9: expired credentials."""
    async with own_server() as server:
        database = await connect(server.dsn)
        (server.data / "pg_hba.conf").write_text(PASSWORDS)
        await database.execute("SELECT pg_reload_conf()")
        async with a_role(database, server.dsn) as (role, dsn):
            app = App(dsn, **QUICK_BEATS)
            async with working(app.runner) as worker:
                await database.fetch(INSERT, "hold", 3)
                await until(lambda: app.holding == 3)
                await database.execute(f"ALTER ROLE {role} PASSWORD 'another'")
                await end_sessions(database, role=role)
                app.let_go.set()
                await until_said(
                    caplog,
                    "password authentication failed",
                    "claiming",
                    "listener",
                    "heartbeat",
                    "settling",
                )
                assert worker.status().pending_settlements == 3
                await database.execute(f"ALTER ROLE {role} PASSWORD 'right'")
                await ended(worker, 3)
                await hears_again(worker, database, 4)
                assert app.ran_once
                assert not app.cancelled
        await database.close()


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own that fills up; skips where none can be had."""
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-disk-") as folder:
        options = f"size={megabytes}m,mode=0700"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode:
            missing(
                f"no file system can be mounted here ({mounted.stderr.strip()}): a full disk is not"
                " tried"
            )
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


async def a_database_on(disk: Path, server: OwnServer) -> str:
    """Its tables are on that disk, the rest is not."""
    connection = await connect(server.dsn)
    place = disk / "tables"
    place.mkdir(mode=0o700)
    owner = server.data.stat()
    os.chown(place, owner.st_uid, owner.st_gid)
    await connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
    await connection.execute("CREATE DATABASE small TABLESPACE small")
    await connection.close()
    dsn = urlunsplit(urlsplit(server.dsn)._replace(path="/small"))
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()
    return dsn


def fill(disk: Path) -> Path:
    """A file that takes all there is."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


async def test_on_a_full_disk_outcomes_are_kept_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A9: SQLSTATE 53100."""
    with small_disk(64) as disk:
        async with own_server() as server:
            dsn = await a_database_on(disk, server)
            app = App(dsn, **QUICK_BEATS)

            @app.runner.job("large")
            async def large(payload: dict[str, int], job: Job) -> str:
                app.holding += 1
                await app.let_go.wait()
                return os.urandom(1_000_000).hex()  # does not compress

            async with working(app.runner) as worker:
                database = await connect(dsn)
                await database.fetch(INSERT, "large", 3)
                await until(lambda: app.holding == 3)
                filler = fill(disk)
                app.let_go.set()
                await until_said(caplog, "No space left on device", "settling")
                assert worker.status().pending_settlements == 3
                assert worker.status().stale == 0
                filler.unlink()
                await ended(worker, 3)
                assert await database.fetchval(LEFT) == 0
                await hears_again(worker, database, 4)
                await database.close()


@pytest.mark.parametrize(
    "held",
    ["SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", "SELECT hybrid_runner.cancel($1)"],
)
async def test_an_outcome_whose_row_is_locked_holds_up_no_other(
    held: str, dsn: str, database: Connection
) -> None:
    """A transaction of somebody's that stays open."""
    app = App(dsn)
    async with working(app.runner) as worker:
        jobs = [row[0] for row in await database.fetch(INSERT, "hold", 10)]
        await until(lambda: app.holding == 10)
        transaction = database.transaction()
        await transaction.start()
        await database.fetch(held, jobs[4])
        app.let_go.set()
        await ended(worker, 9)
        assert worker.status().pending_settlements == 1
        await transaction.rollback()
        await ended(worker, 10)
        assert seen(worker).running == 0
        assert await database.fetchval(COMPLETED) == 10


async def test_a_stop_does_not_wait_for_a_lock_for_ever(dsn: str, database: Connection) -> None:
    """A13: the outcome is lost, and says so; the job is for others to run again."""
    app = App(dsn, grace="300ms")
    async with working(app.runner) as worker:
        [job] = [row[0] for row in await database.fetch(INSERT, "hold", 1)]
        await until(lambda: app.holding == 1)
        transaction = database.transaction()
        await transaction.start()
        await database.fetch("SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", job)
        app.let_go.set()
        await asyncio.wait_for(worker.stop(), 120)
        assert worker.status().pending_settlements == 1
        await transaction.rollback()
    assert await database.fetchval("SELECT dead_at IS NOT NULL FROM hybrid_runner.workers")
    async with working(App(dsn, grace="100ms").runner) as other:
        await until(lambda: other.status().rescued == 1)
