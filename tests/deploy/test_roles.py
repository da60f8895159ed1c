"""deploy/roles.sql: the logins that deployments use, on a server of their own, since roles belong to all databases of one."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections import connect
from tests.deploy.tasks.slow import app as tasks
from tests.support.faults import OwnServer, own_server
from tests.support.working import outcome, runner, working

SCRIPT = Path(__file__).parents[2] / "deploy" / "roles.sql"


@pytest.fixture
async def server() -> AsyncIterator[OwnServer]:
    """One that is migrated."""
    async with own_server() as server:
        yield server


def make_roles(server: OwnServer, **passwords: str) -> None:
    """As an operator does it."""
    subprocess.run([*shlex.split(psql_command()), server.dsn, "-q", "-f", SCRIPT], env=os.environ | passwords, check=True)


def as_role(server: OwnServer, role: str) -> str:
    """The DSN of that login."""
    url = urlsplit(server.dsn)
    return urlunsplit(url._replace(netloc=f"{role}@{url.netloc.rpartition('@')[2]}"))


async def passwords(server: OwnServer) -> dict[str, str | None]:
    """What is kept of each login's password."""
    connection = await connect(server.dsn)
    rows = await connection.fetch("SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE 'jobs_%'")
    await connection.close()
    return {row[0]: row[1] for row in rows}


async def test_a_worker_lives_and_works_as_jobs_worker_and_a_producer_enqueues_as_jobs_producer(server: OwnServer) -> None:
    """F5"""
    make_roles(server)
    app = runner(as_role(server, "jobs_worker"), tasks.registry)
    async with working(app):
        producer = await connect(as_role(server, "jobs_producer"))
        await producer.execute("INSERT INTO hybrid_runner.jobs (kind, queue, payload) VALUES ('slow', 'images', '{\"n\": 1}')")
        await producer.close()
        assert (await outcome(app, "slow", {"n": 2}, queue="images")).result == 2


@pytest.mark.parametrize(
    ("role", "forbidden"),
    [
        ("jobs_worker", "CREATE TABLE hybrid_runner.another (id int)"),
        ("jobs_worker", "DROP TABLE hybrid_runner.jobs"),
        ("jobs_worker", "SELECT rolpassword FROM pg_authid"),
        ("jobs_producer", "SELECT payload FROM hybrid_runner.jobs"),
        ("jobs_producer", "DELETE FROM hybrid_runner.jobs"),
        ("jobs_reader", "DELETE FROM hybrid_runner.jobs"),
        ("jobs_reader", "INSERT INTO hybrid_runner.jobs (kind) VALUES ('slow')"),
    ],
)
async def test_a_login_may_do_no_more_than_its_name_says(role: str, forbidden: str, server: OwnServer) -> None:
    make_roles(server)
    connection: Any = await connect(as_role(server, role))
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(forbidden)
    finally:
        await connection.close()


async def test_run_again_it_changes_the_passwords_that_are_given_and_no_others(server: OwnServer) -> None:
    make_roles(server, WORKER_PASSWORD="one's own", READER_PASSWORD="another")
    before = await passwords(server)
    assert [name for name, password in before.items() if password is None] == ["jobs_producer"]
    make_roles(server, WORKER_PASSWORD="new")
    after = await passwords(server)
    assert {name for name in before if before[name] != after[name]} == {"jobs_worker"}


async def test_a_password_may_have_any_character_if_it_comes_beside_the_address(
    server: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As deploy/compose.yaml gives it."""
    password = "a/b#c@d:e%41?f'g\"h\\i $j&k=l"
    make_roles(server, WORKER_PASSWORD=password)
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"local all jobs_worker scram-sha-256\n{rules.read_text()}")
    owner = await connect(server.dsn)
    await owner.execute("SELECT pg_reload_conf()")
    await owner.close()
    monkeypatch.setenv("PGPASSWORD", "another")
    while await lets_in(server):  # until the server has read its rules
        await asyncio.sleep(0.01)
    monkeypatch.setenv("PGPASSWORD", password)
    app = runner(as_role(server, "jobs_worker"), tasks.registry)
    async with working(app):
        assert (await outcome(app, "slow", {"n": 2}, queue="images")).result == 2


async def lets_in(server: OwnServer) -> bool:
    """Whether PGPASSWORD is good for the login."""
    try:
        connection = await connect(as_role(server, "jobs_worker"))
    except RunnerError:
        return False
    await connection.close()
    return True
