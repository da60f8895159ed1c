"""What the owner of an attached table, who is trusted like a worker, has run by others: never by a
superuser.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hybrid_runner import Runner, RunnerError, Snooze
from hybrid_runner.errors import ConnectionLost
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.statements import Fetches
from tests.support.own_tables import ASKED, made_for_sources, run_by_psql
from tests.support.two_owners import JOBS_OWNER, MEMBER, TABLE_OWNER, WORKER, TwoOwners
from tests.support.waiting import until

KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
TRUSTED: dict[str, Any] = ASKED | {"trust_owner": True}
SEES = """
CREATE SEQUENCE app.of_superusers;
CREATE SEQUENCE app.of_others;
GRANT USAGE ON SEQUENCE app.of_superusers, app.of_others TO PUBLIC;
CREATE FUNCTION app.sees() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    PERFORM nextval(CASE WHEN r.rolsuper THEN 'app.of_superusers' ELSE 'app.of_others' END)
    FROM pg_roles AS r WHERE r.rolname = session_user;
    RETURN true;
END $$;
"""
"""A function of the table's owner, who notes, even if it is rolled back, in whose session it runs.
"""
OF_ITS_OWNER = {
    "key": SEES
    + """
CREATE TYPE app.thing AS ENUM ('a', 'b');
CREATE FUNCTION app.as_text(app.thing) RETURNS text LANGUAGE plpgsql
    AS 'BEGIN PERFORM app.sees(); RETURN ''a''; END';
CREATE CAST (app.thing AS text) WITH FUNCTION app.as_text(app.thing);
ALTER TABLE app.orders DROP id, ADD id app.thing PRIMARY KEY;
INSERT INTO app.orders (id) VALUES ('a');
""",
    "word": SEES
    + """
CREATE DOMAIN app.word AS text CHECK (app.sees() OR VALUE = 'x');
ALTER TABLE app.orders ALTER status TYPE app.word;
""",
    "check": SEES + "ALTER TABLE app.orders ADD CHECK (app.sees() OR status = 'x');",
    "condition": SEES,
}
"""What runs when a table is attached: of its rows, of the words, of `--when`."""
ASKS = dict.fromkeys(OF_ITS_OWNER, TRUSTED) | {"condition": TRUSTED | {"when": "app.constant()"}}
MODES: list[dict[str, Any]] = [{}, {"check": True}, {"guess": True}]
RESET = "ALTER SEQUENCE app.of_superusers RESTART; ALTER SEQUENCE app.of_others RESTART"
CONSTANT = """
CREATE FUNCTION app.constant() RETURNS boolean IMMUTABLE LANGUAGE plpgsql
    AS 'BEGIN RETURN app.sees(); END'
"""


async def seen(owners: TwoOwners) -> list[str]:
    rows = await owners.database.fetch(
        "SELECT sequencename::text FROM pg_sequences WHERE last_value IS NOT NULL"
        " AND sequencename ~ '^of_' ORDER BY 1"
    )
    return [row[0] for row in rows]


async def execute(dsn: str, *statements: str) -> None:
    connection = await connect(dsn)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


@pytest.mark.parametrize("what", OF_ITS_OWNER)
async def test_superuser_attaches_no_table_of_another_role(owners: TwoOwners, what: str) -> None:
    """What it would run of the table's owner runs for a role that is none."""
    await execute(owners.table_owner, OF_ITS_OWNER[what], CONSTANT, RESET)
    await owners.database.execute(MEMBER)
    async with Runner(owners.superuser) as app:
        for mode in MODES:
            with pytest.raises(RunnerError) as refusal:
                await app.attach("app.orders", **ASKS[what], **mode)
            assert f"attach as {JOBS_OWNER}, after GRANT {TABLE_OWNER} TO" in str(refusal.value)
        script = (await app.attach("app.orders", **ASKS[what], sql=True)).sql or ""
    assert await made_for_sources(owners.database) == []
    assert await seen(owners) == []
    with pytest.raises(AssertionError, match="may run as a superuser"):
        run_by_psql(owners.superuser, script)
    assert await made_for_sources(owners.database) == []
    assert await seen(owners) == []
    run_by_psql(owners.jobs_owner, script)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **ASKS[what])
    assert await seen(owners) == ["of_others"]
    async with Runner(owners.superuser) as app:
        assert (await app.source("app.orders")).complaints == []
        await app.detach("app.orders")
    assert await seen(owners) == ["of_others"]


async def test_role_that_can_become_a_superuser_is_refused_like_one(owners: TwoOwners) -> None:
    superuser = await owners.database.fetchval("SELECT quote_ident(current_user)")
    await owners.database.execute(f"{MEMBER}; GRANT {superuser} TO {WORKER}")
    async with Runner(owners.worker) as app:
        with pytest.raises(RunnerError, match="is a superuser or can become one"):
            await app.attach("app.orders", **TRUSTED)
    await owners.database.execute(f"REVOKE {superuser} FROM {WORKER}")


async def test_owner_of_the_jobs_attaches_as_a_member_of_the_tables_owner(
    owners: TwoOwners,
) -> None:
    """The documented way: no superuser takes part, but for one GRANT."""
    async with Runner(owners.jobs_owner) as app:
        with pytest.raises(RunnerError, match=f"have somebody run GRANT {TABLE_OWNER} TO"):
            await app.attach("app.orders", **TRUSTED)
        await owners.database.execute(MEMBER)
        with pytest.raises(RunnerError, match="with --trust-owner that role is trusted"):
            await app.attach("app.orders", **ASKED)
        await app.attach("app.orders", **TRUSTED)
    worker = Runner(owners.worker)

    @worker.job("order")
    async def order(row: dict[str, Any]) -> int:
        return int(row["id"])

    async with worker, worker.worker():
        await execute(owners.table_owner, "INSERT INTO app.orders DEFAULT VALUES")
        await until(
            lambda: owners.database.fetchval("SELECT status FROM app.orders"),
            lambda status: status == "done",
        )
        async with Runner(owners.jobs_owner) as app:
            await app.detach("app.orders")
    assert await made_for_sources(owners.database) == []


async def test_detach_by_a_superuser_leaves_the_table_owners_code_to_workers(
    owners: TwoOwners,
) -> None:
    """Of a row that shows running when it is detached, and one that snoozes."""
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **TRUSTED)
    await execute(
        owners.table_owner,
        SEES,
        "CREATE FUNCTION app.t() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN PERFORM app.sees(); RETURN new; END';"
        "CREATE TRIGGER t BEFORE UPDATE ON app.orders FOR EACH ROW EXECUTE FUNCTION app.t()",
    )
    worker = Runner(owners.worker)
    began = asyncio.Event()

    @worker.job("order")
    async def order(row: dict[str, Any]) -> None:
        if row["id"] == 1:
            raise Snooze("1h")
        began.set()
        await asyncio.Event().wait()

    async with worker, worker.worker():
        await execute(owners.table_owner, "INSERT INTO app.orders DEFAULT VALUES")
        await until(
            lambda: owners.database.fetchval(
                "SELECT count(*) FROM hybrid_runner.jobs WHERE snoozes > 0 AND state = 'queued'"
            )
        )
        await execute(owners.table_owner, "INSERT INTO app.orders DEFAULT VALUES")
        await began.wait()
        async with Runner(owners.superuser) as app:
            await app.detach("app.orders", cancel_jobs=True)
    words = await owners.database.fetch("SELECT status FROM app.orders ORDER BY id")
    assert [row[0] for row in words] == ["waiting", "broken"]
    assert await seen(owners) == ["of_others"]


async def test_trigger_that_deallocates_prepared_statements_costs_a_new_session(
    owners: TwoOwners,
) -> None:
    """Without one, no outcome of any job could be written any more."""
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **TRUSTED)
    await execute(
        owners.table_owner,
        "CREATE FUNCTION app.t() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN EXECUTE ''DEALLOCATE ALL''; RETURN new; END';"
        "CREATE TRIGGER t BEFORE UPDATE ON app.orders FOR EACH ROW EXECUTE FUNCTION app.t();"
        "INSERT INTO app.orders DEFAULT VALUES",
    )
    worker = LazyConnection(owners.worker)
    assert await work(worker) == {"written"}
    with pytest.raises(ConnectionLost):
        await work(worker)
    assert await work(worker) == set()
    assert worker.generation == 2
    await worker.close()


async def test_path_that_a_trigger_sets_for_its_session_is_taken_back(owners: TwoOwners) -> None:
    """An application's function may begin with SET search_path, and not with SET LOCAL."""
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **TRUSTED)
    await execute(
        owners.table_owner,
        "CREATE FUNCTION app.t() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN SET search_path = app; RETURN new; END';"
        "CREATE TRIGGER t BEFORE UPDATE ON app.orders FOR EACH ROW EXECUTE FUNCTION app.t();"
        "INSERT INTO app.orders DEFAULT VALUES",
    )
    worker = await connect(owners.worker, {"search_path": "pg_catalog, pg_temp"})
    assert await work(worker) == {"written"}
    assert await worker.fetchval("SHOW search_path") == "pg_catalog, pg_temp"
    await worker.close()


async def work(worker: Fetches) -> set[str]:
    """Work on what is there; what became of the rows."""
    claims = (await claim_calls.claim_jobs(worker, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(worker, [(one.id, one.number) for one in claims])
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    assert len(await claim_calls.finish_jobs(worker, ends)) == len(claims)
    return {row.outcome for row in shown.values()}
