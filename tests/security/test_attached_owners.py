"""What the owner of an attached table, who is no superuser and owns no runner, can do to those who
write into its rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner import Runner
from hybrid_runner.errors import ConnectionLost
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.statements import Fetches
from tests.support.logins import Login, Logins
from tests.support.own_tables import ASKED, ORDERS, made_for_sources

KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
SETTINGS = (
    "SELECT current_setting('search_path'), current_setting('default_transaction_read_only'),"
    " current_setting('lock_timeout')"
)
HIDDEN = "PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);"


@pytest.fixture
async def owner(database: Connection, dsn: str, login: Logins) -> AsyncIterator[Connection]:
    """A session of the table's owner, who has a schema for what he likes to make."""
    role = Login.NOBODY.role
    await database.execute(
        f'CREATE SCHEMA his AUTHORIZATION "{role}"; GRANT USAGE ON SCHEMA his TO PUBLIC;'
        f'{ORDERS}; ALTER TABLE public.orders OWNER TO "{role}"'
    )
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED, trust_owner=True)
    connection = await connect(login(Login.NOBODY))
    await connection.execute(
        "CREATE TABLE his.seen (who text); GRANT INSERT ON his.seen TO PUBLIC;"
        "GRANT ALL ON public.orders TO PUBLIC; INSERT INTO public.orders DEFAULT VALUES"
    )
    yield connection
    await connection.close()


async def work(worker: Fetches) -> set[str]:
    """Work on what is there; what became of the rows."""
    claims = (await claim_calls.claim_jobs(worker, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(worker, [(one.id, one.number) for one in claims])
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    assert len(await claim_calls.finish_jobs(worker, ends)) == len(claims)
    return {row.outcome for row in shown.values()}


async def give_trigger(owner: Connection, does: str) -> None:
    await owner.execute(
        f"CREATE FUNCTION his.t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}"
        " RETURN new; END $$;"
        "CREATE TRIGGER t BEFORE UPDATE ON public.orders FOR EACH ROW EXECUTE FUNCTION his.t()"
    )


@pytest.mark.parametrize("hidden", ["", HIDDEN], ids=["seen", "hidden"])
async def test_a_trigger_of_the_table_leaves_no_setting_in_the_session_of_a_worker(
    database: Connection, owner: Connection, login: Logins, hidden: str
) -> None:
    """With a path of his, functions of his would run as the worker; read-only, nobody works."""
    await give_trigger(
        owner,
        "PERFORM set_config('search_path', 'his, pg_catalog', false),"
        " set_config('default_transaction_read_only', 'on', false),"
        f" set_config('lock_timeout', '1ms', false); {hidden}",
    )
    await owner.execute(
        "CREATE FUNCTION his.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO his.seen VALUES (current_user); RETURN pg_catalog.clock_timestamp(); END $$"
    )
    worker = await connect(login(Login.WORKER), {"lock_timeout": "7s"})
    before = await worker.fetchrow(SETTINGS)
    assert await work(worker) == {"written"}
    assert await worker.fetchrow(SETTINGS) == before
    await worker.close()
    assert await database.fetch("SELECT * FROM his.seen") == []
    assert await database.fetchval("SELECT status FROM public.orders") == "done"


@pytest.mark.parametrize("who", [Login.WORKER, None], ids=["worker", "superuser"])
async def test_a_function_that_its_owner_alters_runs_nothing_as_whoever_calls_it(
    database: Connection, dsn: str, owner: Connection, login: Logins, who: Login | None
) -> None:
    """He cannot replace what it does, but could say with whose rights, and by what path."""
    await give_trigger(owner, "INSERT INTO his.seen VALUES (current_user);")
    await owner.execute(
        "CREATE FUNCTION his.count() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO his.seen VALUES (current_user); RETURN true; END $$;"
        "CREATE DOMAIN his.text AS pg_catalog.text CHECK (his.count());"
        "CREATE DOMAIN his.jsonb AS pg_catalog.jsonb CHECK (his.count())"
    )
    made = await owner.fetch(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.proname ~ '^source_1_'"
    )
    for (name,) in made:
        await owner.execute(f"ALTER FUNCTION {name} SECURITY INVOKER")
        await owner.execute(f"ALTER FUNCTION {name} SET search_path = his, pg_catalog")
    caller = await connect(login(who) if who else dsn)
    for call in (
        "SELECT hybrid_runner.want_rows(1, 9)",
        "SELECT * FROM hybrid_runner.rows_of_source(1, 'read', '{1}', 1)",
        "SELECT * FROM hybrid_runner.rows_of_source(1, 'plans', '{1}', 1)",
    ):
        with pytest.raises(Exception, match="does not run as the owner"):
            await caller.execute(call)
    assert await work(caller) == {"refused"}
    await caller.close()
    assert await database.fetch("SELECT * FROM his.seen") == []


@pytest.mark.parametrize(
    "into",
    ["jobs (row_key, payload) VALUES ($1, '{}')", "changes (row_key, what) VALUES ($1, 'gone')"],
)
async def test_the_owner_of_a_table_stores_no_key_that_no_row_can_have(
    owner: Connection, into: str
) -> None:
    """Many keys are read at once: fifty of a hundred megabytes would be more than Postgres can."""
    insert = f"INSERT INTO hybrid_runner.source_1_{into}"
    await owner.execute(insert, "1" * 1024)
    with pytest.raises(asyncpg.WithCheckOptionViolationError):
        await owner.execute(insert, "1" * 1025)


@pytest.mark.parametrize("of", ["orders", "another table"])
async def test_a_trigger_that_waits_for_the_commit_never_runs_as_the_worker(
    database: Connection, owner: Connection, login: Logins, of: str
) -> None:
    """Made after the table was attached. PostgreSQL 18 runs such a trigger as its table's owner,
    and earlier ones as whoever commits.
    """
    await owner.execute(
        "CREATE FUNCTION his.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO his.seen VALUES (current_user); RETURN null; END $$;"
        "CREATE TABLE his.other ()"
    )
    if of != "orders":
        await give_trigger(owner, "INSERT INTO his.other DEFAULT VALUES;")
    await owner.execute(
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON"
        f" {'public.orders' if of == 'orders' else 'his.other'} DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION his.late()"
    )
    worker = await connect(login(Login.WORKER))
    is_safe = worker.get_server_version().major >= 18
    assert await work(worker) == {"written" if is_safe else "refused"}
    await worker.close()
    seen = {row[0] for row in await database.fetch("SELECT who FROM his.seen")}
    assert seen == ({Login.NOBODY.role} if is_safe else set())


async def test_a_trigger_that_forgets_what_the_session_has_prepared_costs_a_new_session(
    owner: Connection, login: Logins
) -> None:
    """Without one, no outcome of any job could be written any more."""
    await give_trigger(owner, "EXECUTE 'DEALLOCATE ALL';")
    worker = LazyConnection(login(Login.WORKER))
    assert await work(worker) == {"written"}
    with pytest.raises(ConnectionLost):
        await work(worker)
    assert await work(worker) == set()
    assert worker.generation == 2
    await worker.close()


async def test_what_the_owner_builds_upon_what_was_made_does_not_keep_the_table_attached(
    database: Connection, dsn: str, owner: Connection
) -> None:
    await owner.execute(
        "CREATE VIEW his.jobs AS SELECT row_key FROM hybrid_runner.source_1_jobs;"
        "CREATE VIEW his.rows AS SELECT row_key FROM hybrid_runner.source_1_rows('read', '{1}', 1)"
    )
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED, trust_owner=True)
        await app.detach("orders")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.sources") == 0
    assert await made_for_sources(database) == []
