"""What an application does to its rows reaches their jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.sources.row_changes import ApplyRowChanges
from hybrid_runner.upkeep.sources.tables import Tables
from tests.support.attached import AUDITS, COLUMNS, attach_table
from tests.worker.test_late_rows import begun, completed, inserted, rows
from tests.worker.test_late_rows import turn as write_late

Another = Callable[[], Awaitable[Connection]]
CHANGES = "SELECT count(*) FROM hybrid_runner.row_changes"
ENDED = "SELECT array_agg(row_key || ' ' || state::text ORDER BY id) FROM hybrid_runner.archive"
LIVE = "SELECT array_agg(row_key || ' ' || state::text ORDER BY id) FROM hybrid_runner.jobs"
ASKED = "SELECT array_agg(row_key) FROM hybrid_runner.jobs WHERE cancel_requested_at IS NOT NULL"
NOTE = "INSERT INTO hybrid_runner.row_changes (source, row_key, what) VALUES (1, '1', $1)"
LIVES = (
    "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, lease, first_claim)"
    " VALUES ('worker-1', 'here', 1, '1', '{}', '1 hour', 1)"
)


async def turn(database: Connection) -> dict[tuple[str, ...], float]:
    """One turn of the step; what was counted."""
    step = ApplyRowChanges(Tables())
    await step.run(database)
    return step.applied.read()


async def some_time_ago(database: Connection, seconds: int = 2) -> None:
    """What runs was not claimed just now, but so long ago."""
    await database.execute(
        "UPDATE hybrid_runner.jobs SET started_at = clock_timestamp() - make_interval(secs => $1)"
        " WHERE state = 'running'",
        float(seconds),
    )


async def test_the_job_of_a_row_that_was_cancelled_while_queued_is_cancelled(
    database: Connection,
) -> None:
    """B6; row of section 6: app sets cancelled."""
    await inserted(database)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    assert await turn(database) == {("source 1", "cancelled"): 1}
    assert await database.fetchval(ENDED) == ["1 cancelled"]
    assert (await rows(database))[0]["status"] == "cancelled"
    assert await database.fetchval(CHANGES) == 0


async def test_the_worker_of_a_row_that_was_cancelled_while_it_ran_is_told(
    database: Connection,
) -> None:
    """B6; row of section 6: app sets cancelled."""
    await inserted(database)
    await begun(database)
    await database.execute(LIVES)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    await some_time_ago(database, -60)  # just now, and still so when this machine stood still
    assert await turn(database) == {}  # it may not show yet that it runs
    assert await database.fetchval(CHANGES) == 1
    await some_time_ago(database)
    assert await turn(database) == {("source 1", "told"): 1}
    assert await database.fetchval(ASKED) == ["1"]
    message = "SELECT errors -> -1 ->> 'message' FROM hybrid_runner.jobs"
    assert await database.fetchval(message) == "its row was cancelled"


async def test_a_row_that_was_cancelled_and_is_wanted_again_keeps_its_queued_job(
    database: Connection,
) -> None:
    await inserted(database)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    await database.execute("UPDATE public.audits SET status = 'pending'")
    assert await turn(database) == {}
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert await database.fetchval(CHANGES) == 0


async def test_jobs_of_deleted_rows_are_cancelled_or_told_and_ended_ones_left_alone(
    database: Connection,
) -> None:
    """Row of section 6: delete of queued / running / finished row."""
    await inserted(database)
    await completed(database, await begun(database))
    await inserted_one(database)
    await begun(database, 2)
    await inserted_one(database)
    await database.execute(LIVES)
    await database.execute("DELETE FROM public.audits")
    assert await database.fetchval(CHANGES) == 2
    await some_time_ago(database)
    assert await turn(database) == {("source 1", "told"): 1, ("source 1", "cancelled"): 1}
    assert await database.fetchval(ENDED) == ["1 completed", "3 cancelled"]
    assert await database.fetchval(ASKED) == ["2"]


async def inserted_one(database: Connection) -> None:
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")


async def test_a_row_that_is_there_after_its_delete_keeps_its_job(database: Connection) -> None:
    """Row of section 6: partition moves."""
    await inserted(database)
    await database.execute(NOTE, "gone")
    assert await turn(database) == {}
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert await database.fetchval(CHANGES) == 0


async def test_a_job_that_somebody_has_locked_does_not_hold_up_the_others(
    database: Connection, another: Another
) -> None:
    await inserted(database, 3)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    holder = await another()
    await holder.execute("BEGIN; SELECT FROM hybrid_runner.jobs WHERE row_key = '1' FOR UPDATE")
    assert await turn(database) == {("source 1", "cancelled"): 2}
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert await database.fetchval(CHANGES) == 1
    await holder.execute("COMMIT")
    assert await turn(database) == {("source 1", "cancelled"): 1}


async def test_a_row_wanted_while_the_job_of_an_earlier_one_ran_gets_a_job_when_that_has_ended(
    database: Connection,
) -> None:
    """D1: a row is deleted and inserted anew under its key, beside its running job."""
    await inserted(database)
    claims = await begun(database)
    await database.execute("ALTER TABLE public.audits DISABLE TRIGGER USER")
    await database.execute("DELETE FROM public.audits")
    await completed(database, claims)
    await database.execute(
        "INSERT INTO public.audits (id, status) OVERRIDING SYSTEM VALUE VALUES (1, 'pending')"
    )
    await database.execute(NOTE, "wanted")
    assert await turn(database) == {("source 1", "stored"): 1}
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert await database.fetchval(CHANGES) == 0


async def test_a_row_inserted_anew_beside_its_running_job_gets_one_at_the_end_of_that(
    database: Connection,
) -> None:
    """D1"""
    await inserted(database)
    claims = await begun(database)
    async with database.transaction():
        await database.execute("DELETE FROM public.audits")
        await database.execute(
            "INSERT INTO public.audits (id, status) OVERRIDING SYSTEM VALUE VALUES (1, 'pending')"
        )
    assert await database.fetchval(CHANGES) == 2
    await some_time_ago(database)
    assert await turn(database) == {}
    assert await database.fetchval(LIVE) == ["1 running"]
    assert await database.fetchval(CHANGES) == 0
    await completed(database, claims)
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert (await rows(database))[0]["status"] == "pending"


async def test_a_row_armed_again_while_its_job_is_cancelled_has_a_job_afterwards(
    database: Connection, another: Another
) -> None:
    """The application arms it between the note and the end of the job."""
    await inserted(database)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    form = await another()
    await form.execute("BEGIN; UPDATE public.audits SET status = 'pending'")
    assert await turn(database) == {("source 1", "cancelled"): 1}
    await form.execute("COMMIT")
    await write_late(database)
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert (await rows(database))[0]["status"] == "pending"


async def test_a_row_that_was_read_before_it_was_armed_again_has_a_job_afterwards(
    database: Connection,
) -> None:
    """As the above, with the commit between the reading of the row and the end of its job."""
    await inserted(database)
    await database.execute(NOTE, "cancelled")
    await database.execute(
        "CREATE OR REPLACE FUNCTION"
        " hybrid_runner.source_1_rows(what text, keys text[], most integer) RETURNS TABLE"
        " (row_key text, word text, is_wanted boolean, seen text, fresh text,"
        " size integer, stale_at timestamptz, is_cancelled boolean) LANGUAGE sql"
        " AS $$ SELECT '1', 'cancelled', false, '1', NULL::text, NULL::integer,"
        " NULL::timestamptz, true $$"
    )
    assert await turn(database) == {("source 1", "cancelled"): 1}
    assert await database.fetchval(LIVE) == ["1 queued"]
    assert (await rows(database))[0]["status"] == "pending"


async def test_many_changes_that_have_to_wait_do_not_hold_up_the_one_behind_them(
    database: Connection, another: Another
) -> None:
    await inserted(database, 120)
    holder = await another()
    await holder.execute("BEGIN; SELECT FROM hybrid_runner.jobs WHERE row_key <> '120' FOR UPDATE")
    await database.execute("UPDATE public.audits SET status = 'cancelled' WHERE id < 120")
    await database.execute("UPDATE public.audits SET status = 'cancelled' WHERE id = 120")
    assert await turn(database) == {("source 1", "cancelled"): 1}
    assert await database.fetchval(ENDED) == ["120 cancelled"]


async def attach_another(database: Connection) -> None:
    """A second table, whose row 1 has a job."""
    await database.execute(AUDITS.replace("public.audits", "public.others"))
    await attach_table(
        database, "public.others", columns=COLUMNS, cancel="{row}.status = 'cancelled'"
    )
    await database.execute("INSERT INTO public.others (website_url) VALUES ('b.example')")


async def test_a_table_that_takes_too_long_does_not_hold_up_another(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await inserted(database)
    await attach_another(database)
    await database.execute(
        "UPDATE public.audits SET status = 'cancelled';"
        "UPDATE public.others SET status = 'cancelled';"
        "SET statement_timeout = '3s'"
    )
    await database.execute(
        "CREATE OR REPLACE FUNCTION"
        " hybrid_runner.source_1_rows(what text, keys text[], most integer) RETURNS TABLE"
        " (row_key text, word text, is_wanted boolean, seen text, fresh text,"
        " size integer, stale_at timestamptz, is_cancelled boolean) LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM pg_sleep(60); END $$"
    )
    assert await turn(database) == {("source 2", "cancelled"): 1}
    [line] = [each for each in caplog.messages if "cannot be told" in each]
    assert line.startswith("source 1: ")


async def test_changes_of_a_table_that_cannot_be_read_wait_until_it_is_detached(
    database: Connection,
) -> None:
    await inserted(database)
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    await database.execute("ALTER TABLE public.audits RENAME COLUMN last_heartbeat TO beaten_at")
    assert await turn(database) == {}
    assert await database.fetchval(CHANGES) == 1
    await database.execute("DELETE FROM hybrid_runner.sources")
    await turn(database)
    assert await database.fetchval(CHANGES) == 0


async def test_all_changes_have_their_turn_however_many_there_are(database: Connection) -> None:
    """Row of section 6: TRUNCATE."""
    await inserted(database, 450)
    await database.execute("DELETE FROM public.audits")
    assert await turn(database) == {("source 1", "cancelled"): 450}
