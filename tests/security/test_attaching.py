"""Who may attach a table, and with which rights what was made for it runs."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner import Runner, RunnerError
from hybrid_runner.storage.connections.connection import Connection
from tests.support.logins import Login, Logins
from tests.support.own_tables import ASKED, made_for_sources, run_by_psql
from tests.support.two_owners import MEMBER, TABLE_OWNER, TwoOwners

TABLE = "app.orders"
TRUSTED: dict[str, Any] = ASKED | {"trust_owner": True}


@pytest.mark.parametrize("who", Login)
async def test_nobody_attaches_or_detaches_without_the_rights_of_both_owners(
    owners: TwoOwners, login: Logins, who: Login
) -> None:
    await owners.database.execute(MEMBER)
    async with Runner(login(who)) as app:
        with pytest.raises(RunnerError) as refusal:
            await app.attach(TABLE, **TRUSTED)
        assert "\n" not in str(refusal.value)
        assert await made_for_sources(owners.database) == []
    async with Runner(owners.jobs_owner) as app:
        await app.attach(TABLE, **TRUSTED)
    made = await made_for_sources(owners.database)
    async with Runner(login(who)) as app:
        with pytest.raises(RunnerError) as refusal:
            await app.detach(TABLE)
        assert "\n" not in str(refusal.value)
    assert await made_for_sources(owners.database) == made
    assert await owners.database.fetchval("SELECT detaching_at FROM hybrid_runner.sources") is None


async def test_who_has_not_the_rights_can_print_the_script_for_who_has(
    owners: TwoOwners, login: Logins
) -> None:
    await owners.database.execute(f"{MEMBER}; INSERT INTO app.orders DEFAULT VALUES")
    async with Runner(login(Login.WORKER)) as app:
        attached = await app.attach(TABLE, **TRUSTED, sql=True)
    assert TABLE_OWNER in (attached.sql or "")
    assert await made_for_sources(owners.database) == []
    run_by_psql(owners.jobs_owner, attached.sql or "")
    async with Runner(login(Login.READER)) as app:
        [view] = await app.sources()
    assert (view.owner, view.queued, view.complaints) == (TABLE_OWNER, 1, [])


async def test_the_owner_of_the_table_reaches_nothing_of_ours_once_it_is_detached(
    owners: TwoOwners,
) -> None:
    await owners.database.execute(MEMBER)
    async with Runner(owners.jobs_owner) as app:
        await app.attach(TABLE, **TRUSTED)
        assert await reached(owners.database, TABLE_OWNER) == {
            "source_1_jobs",
            "source_1_changes",
            "source_1_late",
        }
        await app.detach(TABLE)
    assert await reached(owners.database, TABLE_OWNER) == set()


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
