"""A login that may only write rows can make SQL over them fail: for its own, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Runner
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.own_tables import ASKED

pytestmark = pytest.mark.usefixtures("login")
KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
ORDERS = """
CREATE TABLE public.orders (
    id bigint PRIMARY KEY, status text DEFAULT 'waiting', worker text, result jsonb, word text
)
"""
CANCEL: dict[str, Any] = {"cancel_when": "word::boolean"}
DATE: dict[str, Any] = {"when": "word::date <= '2030-01-01'::date"}
BAD = "INSERT INTO public.orders (id, word) VALUES (1, 'maybe')"
WITHOUT_TRIGGERS = "SET session_replication_role = replica; {}; RESET session_replication_role"


@pytest.fixture
async def hostile(database: Connection, login: Logins) -> AsyncIterator[Connection]:
    """A session of the login, which may insert."""
    connection = await connect(login(Login.NOBODY))
    yield connection
    await connection.close()


async def attach(database: Connection, dsn: str, table: str = ORDERS, **asked: Any) -> None:
    await database.execute(table)
    await database.execute(f"GRANT INSERT, UPDATE ON public.orders TO {Login.NOBODY.role}")
    async with Runner(dsn) as app:
        await app.attach("public.orders", **ASKED, **asked)


@pytest.mark.parametrize("more", ["", "PARTITION BY RANGE (id)"], ids=["plain", "partitioned"])
async def test_row_whose_cancel_condition_fails_is_refused_at_once(
    database: Connection, dsn: str, hostile: Connection, more: str
) -> None:
    table = f"{ORDERS} {more};"
    if more:
        table += "CREATE TABLE public.part PARTITION OF public.orders DEFAULT"
    await attach(database, dsn, table, **CANCEL)
    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await hostile.execute(BAD)
    await hostile.execute("INSERT INTO public.orders (id, status) VALUES (2, 'other')")
    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await hostile.execute("UPDATE public.orders SET status = 'waiting', word = 'maybe'")


async def test_job_whose_row_cannot_show_running_is_not_stored_again(
    database: Connection, dsn: str
) -> None:
    await attach(database, dsn, **CANCEL)
    await database.execute(WITHOUT_TRIGGERS.format(BAD))
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (source, row_key, kind, queue)"
        " VALUES (1, '1', 'order', 'default')"
    )
    [claim] = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "refused"
    assert await database.fetchval("SELECT seen FROM hybrid_runner.late_rows")
    await claim_calls.finish_jobs(database, [Finished(claim, State.COMPLETED, result="1")])
    assert await row_calls.write_late_rows(database, 1, ["1"]) == {"1": "refused"}
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.parametrize(
    ("asked", "good", "wanted"),
    [(CANCEL, "'false'", 4), (DATE, "'2024-01-01'", 3)],
    ids=["cancel", "when"],
)
async def test_row_whose_sql_fails_keeps_no_other_from_the_row_check(
    database: Connection, dsn: str, asked: dict[str, Any], good: str, wanted: int
) -> None:
    """One that came by while the triggers were disabled."""
    await attach(database, dsn, **asked)
    await database.execute(
        WITHOUT_TRIGGERS.format(
            f"{BAD}; INSERT INTO public.orders (id, word) SELECT n, {good}"
            " FROM generate_series(2, 4) AS n"
        )
    )
    assert await row_calls.want_rows(database, 1, 100, 0, 64) == wanted
    assert await row_calls.want_rows(database, 1, 100) == 0
    await database.execute(WITHOUT_TRIGGERS.format("DELETE FROM public.orders WHERE id = 3"))
    assert (await row_calls.cancel_jobs_without_rows(database, 1, "", 100))[1] == 1
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (source, row_key, kind, queue)"
        " VALUES (1, '1', 'order', 'default') ON CONFLICT DO NOTHING;"
        "INSERT INTO hybrid_runner.row_changes (source, row_key, what)"
        " VALUES (1, '1', 'cancelled'), (1, '2', 'gone')"
    )
    await database.execute(WITHOUT_TRIGGERS.format("DELETE FROM public.orders WHERE id = 2"))
    did = await database.fetch(
        "SELECT row_key, did FROM hybrid_runner.apply_row_changes(1, 0, 9) ORDER BY row_key"
    )
    assert list(map(tuple, did)) == [("1", "later"), ("2", "cancelled")]


async def test_dates_are_read_as_when_the_table_was_attached(
    database: Connection, dsn: str, hostile: Connection
) -> None:
    await attach(database, dsn, **DATE)
    await hostile.execute("SET datestyle = 'ISO, DMY'")
    with pytest.raises(asyncpg.DatetimeFieldOverflowError):
        await hostile.execute("INSERT INTO public.orders (id, word) VALUES (1, '31/12/2024')")


@pytest.mark.parametrize(
    ("column", "setting", "value"),
    [
        ("interval", "intervalstyle = 'iso_8601'", "'-1 day 2 hours'"),
        ("float8", "extra_float_digits = -15", "1.23456789012345"),
    ],
)
async def test_keys_do_not_depend_on_settings_of_the_session(
    database: Connection, dsn: str, hostile: Connection, column: str, setting: str, value: str
) -> None:
    await attach(database, dsn, ORDERS.replace("id bigint", f"id {column}"))
    await hostile.execute(f"SET {setting}")
    await hostile.execute(f"INSERT INTO public.orders (id) VALUES ({value})")
    [claim] = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "written"
    assert await row_calls.cancel_jobs_without_rows(database, 1, "", 100) == (None, 0)


async def test_word_of_megabytes_is_sent_to_no_worker(
    database: Connection, dsn: str, hostile: Connection
) -> None:
    await attach(database, dsn)
    await hostile.execute("INSERT INTO public.orders (id) VALUES (1)")
    await database.execute("UPDATE public.orders SET status = repeat('w', 3000000)")
    [claim] = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "unwanted"
    assert len(shown[claim.id].word or "") == 1000
