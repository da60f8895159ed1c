"""Who may attach a table, and with which rights what was made for it runs."""

from __future__ import annotations

import pytest

from hybrid_runner import Runner, RunnerError
from hybrid_runner.storage.connections.connection import Connection
from tests.support.logins import Login, Logins
from tests.support.own_tables import ASKED, ORDERS, made_for_sources, run_by_psql


@pytest.fixture
async def owner(database: Connection, login: Logins) -> str:
    """The role that owns the table, and has no other right."""
    await database.execute(ORDERS)
    role = Login.NOBODY.role
    await database.execute(f'ALTER TABLE public.orders OWNER TO "{role}"')
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    return role


@pytest.mark.parametrize("who", Login)
@pytest.mark.usefixtures("owner")
async def test_nobody_attaches_or_detaches_without_the_rights_of_both_owners(
    database: Connection, dsn: str, login: Logins, who: Login
) -> None:
    async with Runner(login(who)) as app:
        with pytest.raises(RunnerError) as refusal:
            await app.attach("orders", **ASKED, trust_owner=True)
        assert "\n" not in str(refusal.value)
        assert await made_for_sources(database) == []
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED, trust_owner=True)
    made = await made_for_sources(database)
    async with Runner(login(who)) as app:
        with pytest.raises(RunnerError) as refusal:
            await app.detach("orders")
        assert "\n" not in str(refusal.value)
    assert await made_for_sources(database) == made
    assert await database.fetchval("SELECT detaching_at FROM hybrid_runner.sources") is None


async def test_who_has_not_the_rights_can_print_the_script_for_who_has(
    database: Connection, dsn: str, login: Logins, owner: str
) -> None:
    async with Runner(login(Login.WORKER)) as app:
        attached = await app.attach("orders", **ASKED, trust_owner=True, sql=True)
    assert owner in (attached.sql or "")
    assert await made_for_sources(database) == []
    run_by_psql(dsn, attached.sql or "")
    async with Runner(login(Login.READER)) as app:
        [view] = await app.sources()
    assert (view.owner, view.queued, view.complaints) == (owner, 1, [])


async def test_the_owner_of_the_table_reaches_nothing_of_ours_once_it_is_detached(
    database: Connection, dsn: str, owner: str
) -> None:
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED, trust_owner=True)
        assert await reached(database, owner) == {
            "source_1_jobs",
            "source_1_changes",
            "source_1_late",
        }
        await app.detach("orders")
    assert await reached(database, owner) == set()


async def reached(database: Connection, role: str) -> set[str]:
    """The tables and views of ours that the role may read or write, and whether it may make any."""
    rows = await database.fetch(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'hybrid_runner'::regnamespace"
        " AND c.relkind IN ('r', 'p', 'v') AND has_any_column_privilege($1, c.oid,"
        " 'SELECT, INSERT, UPDATE') UNION ALL SELECT 'anything new'"
        " WHERE has_schema_privilege($1, 'hybrid_runner', 'CREATE')",
        role,
    )
    return {row[0] for row in rows}
