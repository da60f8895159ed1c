"""A table of a role that is no superuser and owns no runner: what its owner's code leaves in the
sessions of workers.
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
from tests.support.own_tables import ASKED, ORDERS, hand_over, made_for_sources

KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])


@pytest.fixture
async def owner(database: Connection, dsn: str, login: Logins) -> AsyncIterator[Connection]:
    """A session of the table's owner, who has a schema for what he likes to make."""
    role = Login.NOBODY.role
    await database.execute(
        f'CREATE SCHEMA his AUTHORIZATION "{role}"; GRANT USAGE ON SCHEMA his TO PUBLIC;{ORDERS}'
    )
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED)
    await hand_over(database, role)
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


async def test_path_that_a_trigger_sets_for_its_session_is_taken_back(
    owner: Connection, login: Logins
) -> None:
    """An application's function may begin with SET search_path, and not with SET LOCAL."""
    await give_trigger(owner, "SET search_path = his;")
    worker = await connect(login(Login.WORKER), {"search_path": "pg_catalog, pg_temp"})
    assert await work(worker) == {"written"}
    assert await worker.fetchval("SHOW search_path") == "pg_catalog, pg_temp"
    await worker.close()


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
    await owner.execute("TRUNCATE public.orders")
    await database.execute("DELETE FROM hybrid_runner.jobs")
    async with Runner(dsn) as app:
        await app.detach("orders")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.sources") == 0
    assert await made_for_sources(database) == []
