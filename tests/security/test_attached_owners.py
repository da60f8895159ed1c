"""What the owner of an attached table, who is trusted like a worker, has run by others: never by a
superuser.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Runner, RunnerError, Snooze
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.own_tables import ASKED, ORDERS, made_for_sources, run_by_psql
from tests.support.two_owners import JOBS_OWNER, MEMBER, TABLE, TABLE_OWNER, WORKER, TwoOwners
from tests.support.waiting import until

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
MODES: list[dict[str, Any]] = [{}, {"check": True}, {"guess": True}, {"sql": True}]
RESET = "ALTER SEQUENCE app.of_superusers RESTART; ALTER SEQUENCE app.of_others RESTART"
LEFT_OUT = f"a superuser does not check its words and SQL: look as {JOBS_OWNER}"
KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
TRIGGER = """
CREATE TABLE app.proof (can_do_all text);
GRANT INSERT ON app.proof TO PUBLIC;
CREATE FUNCTION app.t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO app.proof VALUES (current_setting('is_superuser'));
    PERFORM app.sees();
    RETURN new;
END $$;
CREATE TRIGGER t BEFORE UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION app.t();
"""
"""A trigger of the table's owner, who notes whose rights it has."""
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
    async with Runner(owners.jobs_owner) as app:
        script = (await app.attach("app.orders", **ASKS[what], sql=True)).sql or ""
    await owners.database.execute(RESET)
    assert await made_for_sources(owners.database) == []
    assert await seen(owners) == []
    with pytest.raises(AssertionError, match=f"run this as {JOBS_OWNER}"):
        run_by_psql(owners.superuser, script)
    assert await made_for_sources(owners.database) == []
    assert await seen(owners) == []
    run_by_psql(owners.jobs_owner, script)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **ASKS[what])
    assert await seen(owners) == ["of_others"]
    async with Runner(owners.superuser) as app:
        assert (await app.source("app.orders")).complaints == [LEFT_OUT]
        await app.detach("app.orders")
    assert await seen(owners) == ["of_others"]


async def test_role_that_can_become_a_superuser_is_refused_like_one(owners: TwoOwners) -> None:
    superuser = await owners.database.fetchval("SELECT quote_ident(current_user)")
    await owners.database.execute(f"{MEMBER}; GRANT {superuser} TO {WORKER}")
    async with Runner(owners.worker) as app:
        with pytest.raises(RunnerError, match="a superuser cannot attach"):
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


async def shown_by(connection: Connection) -> list[str]:
    """What became of the rows of all claimable jobs, which a worker with this session takes."""
    claims = (await claim_calls.claim_jobs(connection, "default", KINDS, 9, "w-1", 1)).claims
    named = [(claim.id, claim.number) for claim in claims]
    shown = await source_calls.show_claims(connection, named)
    return [row.outcome for row in shown.values()]


async def test_superuser_runs_no_code_of_a_table_made_anew(owners: TwoOwners) -> None:
    """Its owner dropped the one that was attached."""
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **TRUSTED)
    insert = "INSERT INTO app.orders DEFAULT VALUES"
    await execute(owners.table_owner, SEES, insert, "DROP TABLE app.orders")
    await owners.database.execute(TABLE)
    await execute(owners.table_owner, TRIGGER.format("app.orders"), insert)
    assert await shown_by(owners.database) == ["locked"]
    assert await seen(owners) == []


async def test_superuser_runs_no_code_of_a_table_put_in_place(owners: TwoOwners) -> None:
    """The owner of its schema may drop a superuser's table, and make one of the same name."""
    await owners.database.execute(ORDERS.replace("public.orders", "app.bills"))
    async with Runner(owners.superuser) as app:
        with pytest.raises(RunnerError, match=f"{TABLE_OWNER} owns it, its schema or"):
            await app.attach("app.bills", **ASKED)
        await owners.database.execute("ALTER SCHEMA app OWNER TO CURRENT_USER")
        await app.attach("app.bills", **ASKED)
        await owners.database.execute(f"ALTER SCHEMA app OWNER TO {TABLE_OWNER}")
    await owners.database.execute("INSERT INTO app.bills DEFAULT VALUES")
    assert await shown_by(owners.database) == ["locked"]


async def test_worker_has_no_rights_of_a_superuser_who_gave_the_table_away(
    owners: TwoOwners,
) -> None:
    """What was made for the table is still the superuser's, until it is attached again."""
    await owners.database.execute(f"{ORDERS}; {MEMBER}")
    async with Runner(owners.superuser) as app:
        await app.attach("public.orders", **ASKED)
    insert = "INSERT INTO public.orders DEFAULT VALUES"
    await owners.database.execute(insert)
    await owners.database.execute(f"ALTER TABLE public.orders OWNER TO {TABLE_OWNER}")
    await execute(owners.table_owner, SEES, TRIGGER.format("public.orders"))
    owner = await connect(owners.table_owner)
    for statement in (insert, "DELETE FROM public.orders", "TRUNCATE public.orders"):
        with pytest.raises(asyncpg.RaiseError, match="owns it no more: attach it anew"):
            await owner.execute(statement)
    await owner.close()
    worker = await connect(owners.worker)
    assert await shown_by(worker) == ["locked"]
    assert await owners.database.fetch("SELECT * FROM app.proof") == []
    async with Runner(owners.jobs_owner) as app:
        await app.attach("public.orders", **TRUSTED)
    await execute(owners.table_owner, insert)
    assert await shown_by(worker) == ["written"]
    assert await owners.database.fetchval("SELECT can_do_all FROM app.proof") == "off"
    await worker.close()


async def test_superuser_runs_no_code_of_a_partitions_owner(owners: TwoOwners) -> None:
    await owners.database.execute(
        "CREATE TABLE public.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " status text DEFAULT 'waiting', worker text, result jsonb) PARTITION BY RANGE (id);"
        "CREATE TABLE app.part PARTITION OF public.orders DEFAULT"
    )
    async with Runner(owners.superuser) as app:
        await app.attach("public.orders", **ASKED)
        await owners.database.execute(f"ALTER TABLE app.part OWNER TO {TABLE_OWNER}")
        with pytest.raises(RunnerError, match=f"{TABLE_OWNER} owns it, its schema or a partition"):
            await app.attach("public.orders", **ASKED)
    await execute(owners.table_owner, SEES, TRIGGER.format("app.part"))
    await owners.database.execute("INSERT INTO public.orders DEFAULT VALUES")
    assert await shown_by(owners.database) == ["locked"]
    assert await seen(owners) == []


async def test_superuser_who_acts_as_a_worker_runs_no_code_of_the_owner(owners: TwoOwners) -> None:
    """RESET SESSION AUTHORIZATION is open to what it would run."""
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach("app.orders", **TRUSTED)
    insert = "INSERT INTO app.orders DEFAULT VALUES"
    await execute(owners.table_owner, SEES, TRIGGER.format("app.orders"), insert)
    await owners.database.execute(f"SET SESSION AUTHORIZATION {WORKER}")
    shown = await shown_by(owners.database)
    await owners.database.execute("RESET SESSION AUTHORIZATION")
    assert shown == ["locked"]
    assert await owners.database.fetch("SELECT * FROM app.proof") == []
