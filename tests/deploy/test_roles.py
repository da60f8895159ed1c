"""deploy/roles.sql: the logins that deployments use, on a server of their own, since roles belong
to all databases of one.
"""

from __future__ import annotations

import os
import re
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
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from tests.cli.running import succeeds
from tests.deploy.tasks.slow import app as tasks
from tests.support.faults import OwnServer, own_server
from tests.support.server import QUICK, embedded
from tests.support.waiting import equals, until
from tests.support.working import outcome, runner, working

SCRIPT = Path(__file__).parents[2] / "deploy" / "roles.sql"


@pytest.fixture
async def server() -> AsyncIterator[OwnServer]:
    """One that is migrated, and has the roles already."""
    async with own_server() as server:
        yield server


def make_roles(server: OwnServer, **passwords: str) -> None:
    """As an operator does it."""
    psql(server.dsn, "-q", "-f", str(SCRIPT), **passwords)


def psql(dsn: str, *arguments: str, **variables: str) -> str:
    """What it writes."""
    command = [*shlex.split(psql_command()), dsn, *arguments]
    return subprocess.run(
        command, env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def as_role(server: OwnServer, role: str) -> str:
    """The DSN of that login."""
    return with_role(server.dsn, role)


def with_role(dsn: str, role: str) -> str:
    """The same database by that login."""
    url = urlsplit(dsn)
    return urlunsplit(url._replace(netloc=f"{role}@{url.netloc.rpartition('@')[2]}"))


def of_database(dsn: str, name: str) -> str:
    """Another database of the same server."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


async def may_connect(dsn: str) -> bool:
    """Whether the server lets it in."""
    try:
        connection = await connect(dsn)
    except RunnerError as error:
        if "permission denied for database" not in str(error):
            raise
        return False
    await connection.close()
    return True


async def passwords(server: OwnServer) -> dict[str, str | None]:
    """What is kept of each login's password."""
    connection = await connect(server.dsn)
    rows = await connection.fetch(
        "SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE 'jobs_%'"
    )
    await connection.close()
    return {row[0]: row[1] for row in rows}


async def test_a_worker_lives_and_works_as_jobs_worker_and_a_producer_enqueues_as_jobs_producer(
    server: OwnServer,
) -> None:
    """F5"""
    make_roles(server)
    app = runner(as_role(server, "jobs_worker"), tasks.registry)
    async with working(app):
        producer = await connect(as_role(server, "jobs_producer"))
        await producer.execute(
            "INSERT INTO hybrid_runner.jobs (kind, queue, payload) VALUES ('slow', 'images',"
            " '{\"n\": 1}')"
        )
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
async def test_a_login_may_do_no_more_than_its_name_says(
    role: str, forbidden: str, server: OwnServer
) -> None:
    make_roles(server)
    connection: Any = await connect(as_role(server, role))
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(forbidden)
    finally:
        await connection.close()


@pytest.fixture
async def fresh() -> AsyncIterator[OwnServer]:
    """One without any roles."""
    with embedded(QUICK) as postgres:
        yield OwnServer(postgres)


def fenced(language: str) -> list[str]:
    """The commands of deploy/README.md about the database, one a line."""
    page = (SCRIPT.parent / "README.md").read_text(encoding="utf-8")
    [section] = re.findall(r"^## The database$.*?(?=^## )", page, re.MULTILINE | re.DOTALL)
    blocks = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


async def test_roles_and_logins_of_the_page_have_no_powers_on_the_server(
    fresh: OwnServer,
) -> None:
    """On PostgreSQL 14 and 15 CREATEROLE is as good as the server's account."""
    for statement in fenced("sql"):
        psql(fresh.dsn, "-qc", statement)
    jobs = of_database(fresh.dsn, "jobs")
    commands = fenced("sh")
    assert [command.split()[-1] for command in commands] == [
        "deploy/roles.sql",
        "migrate",
        "migrate",
    ]
    psql(jobs, "-q", "-f", str(SCRIPT))
    owner = with_role(jobs, "jobs_owner")
    for command in commands[1:]:
        succeeds(*shlex.split(command)[1:], HYBRID_RUNNER_DSN=owner)
    assert psql(jobs, "-Atc", f"{MADE} ORDER BY 1").split() == [
        "hybrid_monitors_editor",
        "hybrid_runner_producer",
        "hybrid_runner_reader",
        "hybrid_runner_worker",
        "jobs_owner",
        "jobs_producer",
        "jobs_reader",
        "jobs_worker",
    ]
    assert psql(jobs, "-Atc", f"{MADE} AND ({POWERS})") == ""
    with pytest.raises(subprocess.CalledProcessError):
        psql(owner, "-qc", "GRANT pg_execute_server_program TO jobs_owner")
    psql(with_role(jobs, "jobs_producer"), "-qc", INSERT)
    assert psql(with_role(jobs, "jobs_reader"), "-Atc", COUNT) == "1"
    psql(jobs, "-q", "-f", str(SCRIPT))  # again, behind the migration
    assert succeeds("migrate", HYBRID_RUNNER_DSN=owner).startswith("already")


async def test_an_administrator_without_superuser_runs_the_script(fresh: OwnServer) -> None:
    psql(fresh.dsn, "-qc", "CREATE ROLE head LOGIN CREATEROLE CREATEDB")
    psql(with_role(fresh.dsn, "head"), "-qc", "CREATE DATABASE jobs")
    jobs = of_database(with_role(fresh.dsn, "head"), "jobs")
    psql(jobs, "-q", "-f", str(SCRIPT))
    succeeds("migrate", HYBRID_RUNNER_DSN=with_role(jobs, "jobs_owner"))
    psql(with_role(jobs, "jobs_producer"), "-qc", INSERT)
    assert psql(jobs, "-Atc", PUBLIC_MAY) == "false false"


MADE = "SELECT rolname FROM pg_roles WHERE rolname ~ '^(jobs|hybrid_(runner|monitors))_'"
POWERS = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')"
COUNT = "SELECT count(*) FROM hybrid_runner.jobs"
PUBLIC_MAY = """
    SELECT has_database_privilege('public', current_database(), 'CONNECT')::text || ' '
        || has_database_privilege('public', current_database(), 'TEMP')::text
"""
STRANGER = "CREATE ROLE stranger LOGIN"


async def test_nobody_else_of_the_server_comes_into_the_database(server: OwnServer) -> None:
    """LISTEN, NOTIFY and advisory locks need no right but to be connected."""
    psql(server.dsn, "-qc", STRANGER)
    assert await may_connect(as_role(server, "stranger"))
    make_roles(server)
    assert psql(server.dsn, "-Atc", PUBLIC_MAY) == "false false"
    assert not await may_connect(as_role(server, "stranger"))
    for name in ("jobs_worker", "jobs_producer", "jobs_reader"):
        assert await may_connect(as_role(server, name))
        with pytest.raises(subprocess.CalledProcessError):
            psql(as_role(server, name), "-qc", "CREATE TEMP TABLE mine (id int)")


async def test_everybody_comes_in_as_before_if_that_is_asked_for(server: OwnServer) -> None:
    make_roles(server, KEEP_PUBLIC="yes")
    assert psql(server.dsn, "-Atc", PUBLIC_MAY) == "true true"


async def test_logins_of_one_database_do_not_come_into_another_one(server: OwnServer) -> None:
    """Roles belong to the whole server, so a reader of one would be a reader of all."""
    psql(server.dsn, "-qc", "CREATE DATABASE shop")
    shop = of_database(server.dsn, "shop")
    connection = await connect(shop)
    await migrate(connection)
    await connection.close()
    make_roles(server)
    psql(shop, "-q", "-f", str(SCRIPT), LOGINS="shop")
    for role in ("worker", "producer", "reader"):
        for name, at, is_let_in in (
            (f"jobs_{role}", server.dsn, True),
            (f"jobs_{role}", shop, False),
            (f"shop_{role}", server.dsn, False),
            (f"shop_{role}", shop, True),
        ):
            assert await may_connect(with_role(at, name)) == is_let_in


async def test_who_makes_the_logins_calls_nothing_that_a_stranger_made(server: OwnServer) -> None:
    psql(
        server.dsn,
        "-qc",
        f"{STRANGER}; GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE SEQUENCE public.sprung;"
        "GRANT ALL ON SEQUENCE public.sprung TO PUBLIC",
    )
    for name, arguments in (("format", "text, text, text"), ("format", "text, name")):
        psql(
            as_role(server, "stranger"),
            "-qc",
            f"CREATE FUNCTION public.{name}({arguments}) RETURNS text LANGUAGE sql AS $$SELECT"
            " nextval('public.sprung')::text$$",
        )
    make_roles(server)
    assert psql(server.dsn, "-Atc", "SELECT is_called FROM public.sprung") == "f"


async def test_run_again_it_changes_the_passwords_that_are_given_and_no_others(
    server: OwnServer,
) -> None:
    make_roles(server, WORKER_PASSWORD="one's own", READER_PASSWORD="another")
    before = await passwords(server)
    assert {name for name in before if before[name] is None} == {"jobs_owner", "jobs_producer"}
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
    await until(lambda: lets_in(server), equals(value=False))  # it has to read its rules
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
