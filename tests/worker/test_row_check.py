"""Rows of attached tables are compared with their jobs, and what was missed is mended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from hybrid_runner.model.rows import SourceState
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.sources.row_check import CheckRows
from hybrid_runner.upkeep.sources.tables import Tables
from tests.worker.test_late_rows import begun, completed, inserted, rows, turn
from tests.worker.test_row_changes import ENDED, LIVE

Another = Callable[[], Awaitable[Connection]]
NO_TIMES = "last_heartbeat = NULL, processing_started_at = NULL"
WITHOUT = "SET session_replication_role = replica"
WITH = "RESET session_replication_role"


async def source(database: Connection) -> SourceState:
    await database.execute("UPDATE hybrid_runner.sources SET made_at = now() - interval '1 hour'")
    (one,) = await row_calls.source_states(database)
    return one


def checking() -> CheckRows:
    return CheckRows(Tables(), timedelta(minutes=1))


async def test_rows_that_were_inserted_without_triggers_get_their_jobs(
    database: Connection,
) -> None:
    """D1, B12; row of section 6: replica role, disabled triggers, pg_restore."""
    await inserted(database)
    await database.execute(
        f"{WITHOUT}; INSERT INTO public.audits (website_url) VALUES ('b'), ('c'); {WITH}"
    )
    check = checking()
    await check.check(database, await source(database))
    assert await database.fetchval(LIVE) == ["1 queued", "2 queued", "3 queued"]
    assert check.repairs.read()["public.audits", "stored"] == 2
    await check.check(database, await source(database))
    assert check.repairs.read()["public.audits", "stored"] == 2


async def test_the_rows_of_a_table_that_was_just_attached_are_left_to_whoever_does_that(
    database: Connection,
) -> None:
    await inserted(database)
    await database.execute("DELETE FROM hybrid_runner.jobs")
    check = checking()
    (one,) = await row_calls.source_states(database)
    await check.check(database, one)
    assert await database.fetchval(LIVE) is None
    await check.check(database, await source(database))
    assert await database.fetchval(LIVE) == ["1 queued"]


async def test_a_row_that_is_not_reconciled_gets_no_job(database: Connection) -> None:
    await inserted(database)
    await database.execute("DELETE FROM hybrid_runner.jobs")
    await database.execute("UPDATE hybrid_runner.sources SET is_reconciled = false, note = 'why'")
    await checking().check(database, await source(database))
    assert await database.fetchval(LIVE) is None


async def test_a_row_that_shows_running_without_a_job_is_wanted_again_once_it_is_stalled(
    database: Connection,
) -> None:
    """D5"""
    await inserted(database, 2)
    await begun(database)
    await database.execute("DELETE FROM hybrid_runner.jobs")
    await database.execute(
        "UPDATE public.audits SET last_heartbeat = now() - interval '6 minutes',"
        " processing_started_at = now() - interval '7 minutes' WHERE id = 1"
    )
    check = checking()
    for _ in range(2):
        await check.check(database, await source(database))
    assert [row["status"] for row in await rows(database)] == ["pending", "processing"]
    assert check.repairs.read()["public.audits", "wanted_again"] == 1
    assert await database.fetchval(LIVE) == ["1 queued"]


async def test_a_row_without_a_heartbeat_is_wanted_again_when_two_turns_have_seen_it(
    database: Connection,
) -> None:
    await inserted(database)
    await begun(database)
    await database.execute("DELETE FROM hybrid_runner.jobs")
    await database.execute(f"UPDATE public.audits SET {NO_TIMES}")
    check = checking()
    await check.check(database, await source(database))
    assert (await rows(database))[0]["status"] == "processing"
    await check.check(database, await source(database))
    assert (await rows(database))[0]["status"] == "pending"


async def test_a_job_whose_row_is_gone_is_cancelled(database: Connection) -> None:
    """Row of section 6: DETACH PARTITION; key columns changed by UPDATE."""
    await inserted(database, 3)
    await database.execute(f"{WITHOUT}; DELETE FROM public.audits WHERE id = 2; {WITH}")
    check = checking()
    await check.check(database, await source(database))
    assert await database.fetchval(ENDED) == ["2 cancelled"]
    assert await database.fetchval(LIVE) == ["1 queued", "3 queued"]
    assert check.repairs.read()["public.audits", "cancelled"] == 1


async def test_a_large_table_without_an_index_is_not_read_unless_that_was_allowed(
    database: Connection,
) -> None:
    """As many rows as may be read, and an index that leads to those which are wanted or run."""
    await inserted(database)
    await database.execute(
        f"{WITHOUT}; INSERT INTO public.audits (status) SELECT 'completed'"
        " FROM generate_series(1, 101000); INSERT INTO public.audits (website_url) VALUES ('b');"
        f" {WITH}; ANALYZE public.audits"
    )
    check = checking()
    await check.check(database, await source(database))
    assert check.too_dear == {1}
    assert await database.fetchval(LIVE) == ["1 queued"]
    await database.execute("CREATE INDEX ON public.audits (status); ANALYZE public.audits")
    await check.check(database, await source(database))
    assert check.too_dear == set()
    assert await database.fetchval(LIVE) == ["1 queued", "101002 queued"]


async def test_a_large_table_may_be_read_if_whoever_attached_it_says_so(
    database: Connection,
) -> None:
    await inserted(database)
    await database.execute(
        "UPDATE pg_class SET reltuples = 200000 WHERE oid = 'public.audits'::regclass"
    )
    check = checking()
    await check.check(database, await source(database))
    assert check.too_dear == {1}
    await database.execute(
        "UPDATE hybrid_runner.sources SET definition = definition || '{\"scan\": true}'"
    )
    await check.check(database, await source(database))
    assert check.too_dear == set()


async def test_rows_that_are_late_are_left_to_whoever_writes_them(
    database: Connection, another: Another
) -> None:
    await inserted(database)
    claims = await begun(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    await completed(database, claims)
    await form.execute("COMMIT")
    await database.execute(f"UPDATE public.audits SET {NO_TIMES}")
    check = checking()
    for _ in range(3):
        await check.check(database, await source(database))
    assert (await rows(database))[0]["status"] == "processing"
    assert await database.fetchval(LIVE) is None


async def test_a_row_that_cannot_show_its_end_is_not_taken_for_one_that_was_missed(
    database: Connection,
) -> None:
    """D7: it says pending for as long as Postgres refuses, and is done once."""
    await inserted(database)
    await database.execute("ALTER TABLE public.audits ADD CHECK (status = 'pending')")
    await completed(database, await begun(database))
    assert (await rows(database))[0]["status"] == "pending"
    await checking().check(database, await source(database))
    assert await database.fetchval(LIVE) is None
    await database.execute("ALTER TABLE public.audits DROP CONSTRAINT audits_status_check")
    await turn(database)
    assert (await rows(database))[0]["status"] == "completed"


async def test_late_rows_do_not_take_the_place_of_rows_that_nobody_works_on(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: however many are late."""
    monkeypatch.setattr("hybrid_runner.upkeep.sources.row_check._MOST", 2)
    await inserted(database, 3)
    claims = await begun(database)
    await database.execute("ALTER TABLE public.audits ADD CHECK (id = 3 OR status = 'processing')")
    await completed(database, claims[:2])
    await completed(database, claims[2:])
    assert [row["status"] for row in await rows(database)] == ["processing"] * 2 + ["completed"]
    await database.execute(f"UPDATE public.audits SET {NO_TIMES}, status = 'processing'")
    check = checking()
    for _ in range(2):
        await check.check(database, await source(database))
    assert (await rows(database))[2]["status"] == "pending"


async def test_one_table_that_cannot_be_compared_is_said_once_and_stops_no_other(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Row of section 6: column dropped or renamed."""
    await inserted(database)
    await database.execute(
        "INSERT INTO hybrid_runner.sources"
        " (relation, relation_name, kind, queue, owner, definition)"
        " VALUES ('pg_class', 'public.other', 'audit', 'default', current_user, '{}')"
    )
    await database.execute("ALTER TABLE public.audits RENAME COLUMN status TO state")
    check = checking()
    await check.run(database)
    assert [line.split(":")[0] for line in caplog.messages] == ["public.audits", "public.other"]
    assert set(check.failing) == {1, 2}
    await database.execute("ALTER TABLE public.audits RENAME COLUMN state TO status")
    await check.check(database, await source_one(database))


async def source_one(database: Connection) -> SourceState:
    return (await row_calls.source_states(database))[0]
