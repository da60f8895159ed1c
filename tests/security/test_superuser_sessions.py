"""Sessions of a superuser run no code of a table's owner who is none."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner import Runner
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.own_tables import ASKED, ORDERS, hand_over

KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
TRIGGER = """
CREATE FUNCTION his.t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN new; END $$;
CREATE TRIGGER t BEFORE UPDATE ON public.orders FOR EACH ROW EXECUTE FUNCTION his.t()
"""
SPY = "INSERT INTO his.seen VALUES (session_user);"
HOLD = "EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT his.steal()';"
STEAL = (
    "CREATE FUNCTION his.steal() RETURNS text LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO his.seen VALUES (current_user); RETURN ''; END $$"
)


@pytest.fixture
async def owner(database: Connection, dsn: str, login: Logins) -> AsyncIterator[Connection]:
    """A session of the owner of an attached table with one wanted row."""
    role = Login.NOBODY.role
    await database.execute(
        f'CREATE SCHEMA his AUTHORIZATION "{role}"; GRANT USAGE ON SCHEMA his TO PUBLIC; {ORDERS}'
    )
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED)
    await hand_over(database, role)
    connection = await connect(login(Login.NOBODY))
    await connection.execute(
        "CREATE TABLE his.seen (who text); GRANT INSERT ON his.seen TO PUBLIC;"
        "INSERT INTO public.orders DEFAULT VALUES"
    )
    yield connection
    await connection.close()


@pytest.mark.parametrize("does", [SPY, HOLD], ids=["at once", "at the commit"])
async def test_superuser_is_refused_to_cancel_or_retry_jobs_of_another_owner(
    database: Connection, owner: Connection, login: Logins, does: str
) -> None:
    """A worker is not, with the login that it has."""
    await owner.execute(STEAL)
    await owner.execute(TRIGGER.format(does))
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    worker = await connect(login(Login.WORKER))
    for call in ("cancel", "retry"):
        with pytest.raises(asyncpg.RaiseError, match="a superuser runs no code"):
            await database.fetchval(f"SELECT hybrid_runner.{call}($1)", job)
        assert await database.fetch("SELECT * FROM his.seen") == []
        await worker.fetchval(f"SELECT hybrid_runner.{call}($1)", job)
        await owner.execute("TRUNCATE his.seen")
    await worker.close()


@pytest.mark.usefixtures("owner")
async def test_superuser_reads_no_row_of_another_owner(database: Connection) -> None:
    for call in (
        "SELECT hybrid_runner.want_rows(1, 9)",
        "SELECT * FROM hybrid_runner.rows_of_source(1, 'read', '{1}', 1)",
        "SELECT * FROM hybrid_runner.rows_of_source(1, 'plans', '{1}', 1)",
    ):
        with pytest.raises(asyncpg.RaiseError, match="a superuser runs no code"):
            await database.execute(call)
    [claim] = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert [row.outcome for row in shown.values()] == ["locked"]
