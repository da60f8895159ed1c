"""Rows that could not be written when something became of their jobs are written later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.sources.late_rows import WriteLateRows
from hybrid_runner.upkeep.sources.tables import Tables
from tests.support.attached import AUDITS, COLUMNS, attach_table

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
Another = Callable[[], Awaitable[Connection]]
LATE = "SELECT count(*) FROM hybrid_runner.late_rows"
DUE = "UPDATE hybrid_runner.late_rows SET next_try_at = '-infinity'"
NOW = "SELECT clock_timestamp()"


async def attach(database: Connection) -> None:
    """Make the table audits and attach it; rows that say `cancelled` are to be cancelled."""
    await database.execute(AUDITS)
    await attach_table(
        database, "public.audits", columns=COLUMNS, cancel="{row}.status = 'cancelled'"
    )


async def inserted(database: Connection, count: int = 1) -> None:
    """Attach the table, and insert rows."""
    await attach(database)
    await database.execute(
        "INSERT INTO public.audits (website_url)"
        " SELECT 'a.example/' || n FROM generate_series(1, $1::int) AS n",
        count,
    )


async def claimed(database: Connection, number: int = 1) -> list[Claim]:
    result = await claim_calls.claim_jobs(database, "default", KINDS, 100, "worker-1", number)
    return list(result.claims)


async def begun(database: Connection, number: int = 1) -> list[Claim]:
    claims = await claimed(database, number)
    await source_calls.show_claims(database, [(each.id, each.number) for each in claims])
    return claims


async def completed(database: Connection, claims: list[Claim], result: str = "1") -> None:
    done = [Finished(claim, State.COMPLETED, result=result) for claim in claims]
    assert len(await claim_calls.finish_jobs(database, done)) == len(claims)


async def rows(database: Connection) -> list[dict[str, Any]]:
    return [dict(row) for row in await database.fetch("SELECT * FROM public.audits ORDER BY id")]


async def turn(database: Connection) -> WriteLateRows:
    """One turn of the step, as if everything were due."""
    step = WriteLateRows(Tables())
    await database.execute(DUE)
    await step.run(database)
    return step


async def held_while_ending(database: Connection, another: Another, count: int = 1) -> Connection:
    """Somebody holds all rows, and their jobs have ended meanwhile."""
    await inserted(database, count)
    claims = await begun(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    await completed(database, claims, '{"score": 7}')
    return form


async def test_a_row_that_was_held_while_its_job_ended_shows_the_end_with_its_result(
    database: Connection, another: Another
) -> None:
    """D7; row of section 6: row locked by a form for an hour."""
    form = await held_while_ending(database, another)
    await turn(database)
    assert (await rows(database))[0]["status"] == "processing"
    assert await database.fetchval(LATE) == 1
    await form.execute("COMMIT")
    await turn(database)
    [row] = await rows(database)
    assert (row["status"], row["raw_data"]) == ("completed", '{"score": 7}')
    assert row["finished_at"] is not None
    assert row["processing_worker_id"] == "worker-1"
    assert await database.fetchval(LATE) == 0


async def test_a_row_that_was_held_at_the_claim_shows_that_its_job_runs(
    database: Connection, another: Another
) -> None:
    """D3"""
    await inserted(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    await begun(database)
    await form.execute("COMMIT")
    await turn(database)
    [row] = await rows(database)
    assert (row["status"], row["processing_worker_id"]) == ("processing", "worker-1")
    assert row["retry_count"] == 0


async def test_what_is_written_is_what_is_true_then_and_not_what_was_missed(
    database: Connection, another: Another
) -> None:
    """Three things became of the job while its row was held: the last one counts."""
    await inserted(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    (claim,) = await begun(database)
    back = Requeued(claim, timedelta(0), charged=True, error='{"message": "no answer"}')
    await claim_calls.requeue_jobs(database, [back])
    await begun(database, 2)
    await form.execute("COMMIT")
    await turn(database)
    [row] = await rows(database)
    assert (row["status"], row["retry_count"]) == ("processing", 1)


async def test_a_row_put_back_while_it_was_held_shows_its_queued_word_and_the_error(
    database: Connection, another: Another
) -> None:
    """D5"""
    await inserted(database)
    (claim,) = await begun(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    back = Requeued(claim, timedelta(0), charged=True, error='{"message": "no answer"}')
    await claim_calls.requeue_jobs(database, [back])
    await form.execute("COMMIT")
    await turn(database)
    [row] = await rows(database)
    assert (row["status"], row["retry_count"], row["error"]) == ("pending", 1, "no answer")
    assert row["processing_worker_id"] is None


async def test_a_row_wanted_anew_by_whoever_held_it_gets_a_new_job(
    database: Connection, another: Another
) -> None:
    """D1; row of section 6: app sets pending while the job runs."""
    await inserted(database)
    claims = await begun(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    await completed(database, claims)
    await form.execute("UPDATE public.audits SET status = 'pending'; COMMIT")
    await database.execute("DELETE FROM hybrid_runner.jobs")  # what its trigger stored
    step = await turn(database)
    assert step.written.read() == {("source 1", "again"): 1}
    assert (await rows(database))[0]["status"] == "pending"
    assert await database.fetchval("SELECT row_key FROM hybrid_runner.jobs") == "1"


async def test_an_older_jobs_end_is_not_written_over_a_newer_jobs_run(
    database: Connection, another: Another
) -> None:
    form = await held_while_ending(database, another)
    await form.execute("UPDATE public.audits SET status = 'pending'; COMMIT")
    late = "SELECT source, row_key, job_id, state, why FROM hybrid_runner.late_rows"
    kept = await database.fetchrow(late)
    await begun(database, 2)
    assert kept is not None
    await database.execute(  # as if the later writer had read it before
        "INSERT INTO hybrid_runner.late_rows (source, row_key, job_id, state, why)"
        " VALUES ($1, $2, $3, $4, $5)",
        *kept,
    )
    await turn(database)
    assert (await rows(database))[0]["status"] == "processing"
    assert await database.fetchval(LATE) == 0


async def test_an_end_is_not_written_once_a_newer_job_is_there(database: Connection) -> None:
    """One that came between the reading of the archive and the writing of the row."""
    await inserted(database)
    (first,) = await begun(database)
    await database.execute("UPDATE public.audits SET status = 'pending'")
    await completed(database, [first])
    await begun(database, 2)
    writes = (
        "SELECT outcome FROM hybrid_runner.write_rows(1, ARRAY[$1::bigint], '{1}', '{completed}',"
        " '{f}', '{0}', NULL, NULL, NULL, NULL, NULL, is_checked => $2)"
    )
    assert await database.fetchval(writes, first.id, True) == "kept"
    assert (await rows(database))[0]["status"] == "processing"
    assert await database.fetchval(writes, first.id, False) == "written"


async def test_a_row_whose_job_the_archive_has_forgotten_shows_what_became_of_it(
    database: Connection, another: Another
) -> None:
    """Row of section 6: retention."""
    form = await held_while_ending(database, another)
    await form.execute("COMMIT")
    await database.execute("DELETE FROM hybrid_runner.archive")
    await turn(database)
    assert (await rows(database))[0]["status"] == "completed"
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_one_refused_row_does_not_hold_up_the_others_and_is_tried_less_and_less(
    database: Connection, another: Another
) -> None:
    """Row of section 6: row refuses the word."""
    form = await held_while_ending(database, another, 20)
    await form.execute("COMMIT")
    await database.execute(
        "ALTER TABLE public.audits"
        " ADD CONSTRAINT not_seven CHECK (id <> 7 OR status <> 'completed')"
    )
    before = await database.fetchval(NOW)
    step = await turn(database)
    words = [row["status"] for row in await rows(database)]
    assert words == ["completed"] * 6 + ["processing"] + ["completed"] * 13
    assert step.written.read() == {("source 1", "written"): 19, ("source 1", "refused"): 1}
    waits = (
        "SELECT is_refused, why LIKE '%not_seven%', next_try_at > $1 FROM hybrid_runner.late_rows"
    )
    found = await database.fetch(waits, before + timedelta(seconds=1))
    assert [tuple(row) for row in found] == [(True, True, True)]
    for _ in range(4):
        before = await database.fetchval(NOW)
        await turn(database)
    [late] = await database.fetch(waits, before + timedelta(seconds=30))
    assert late[2] is True
    await database.execute("ALTER TABLE public.audits DROP CONSTRAINT not_seven")
    await turn(database)
    assert (await rows(database))[6]["status"] == "completed"


async def test_who_holds_a_row_for_long_is_named_once(
    database: Connection,
    another: Another,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Row of section 6: row locked by a form for an hour: one warning naming the pid."""
    monkeypatch.setattr("hybrid_runner.upkeep.sources.late_rows.ASK_EVERY", 0.0)
    form = await held_while_ending(database, another)
    await database.execute("UPDATE hybrid_runner.late_rows SET since = since - interval '11 s'")
    step = WriteLateRows(Tables())
    for _ in range(2):
        await database.execute(DUE)
        await step.run(database)
        await step.run(database)  # somebody rang: nothing is due
    [line] = [each for each in caplog.messages if "cannot show what became" in each]
    assert f"session {form.get_server_pid()} (" in line
    assert "pg_terminate_backend" in line


@pytest.mark.parametrize(
    "holding",
    [
        "SELECT FROM public.audits FOR UPDATE",
        "SELECT FROM public.audits FOR SHARE",
        "UPDATE public.audits SET website_url = 'b'",
        "SAVEPOINT one; UPDATE public.audits SET website_url = 'b'; RELEASE one",
    ],
)
async def test_who_holds_a_row_is_told_whatever_holds_it_and_whoever_refers_to_it(
    database: Connection, another: Another, holding: str
) -> None:
    await inserted(database)
    await database.execute("CREATE TABLE public.pages (audit bigint REFERENCES public.audits)")
    referring, form = await another(), await another()
    await referring.execute("BEGIN; INSERT INTO public.pages VALUES (1)")
    if "FOR UPDATE" in holding or "SAVEPOINT" in holding:
        await referring.execute("ROLLBACK")
    await form.execute(f"BEGIN; {holding}")
    [holder] = await row_calls.find_row_holders(database, 1, ["1"])
    assert (holder.row_key, holder.session.pid) == ("1", form.get_server_pid())
    await form.execute("ROLLBACK")
    assert await row_calls.find_row_holders(database, 1, ["1"]) == []


async def test_a_row_whose_job_is_about_to_change_is_left_for_the_next_turn(
    database: Connection, another: Another
) -> None:
    await inserted(database)
    form = await another()
    await form.execute("BEGIN; SELECT FROM public.audits FOR UPDATE")
    await begun(database)
    await form.execute("COMMIT; BEGIN; SELECT FROM hybrid_runner.jobs FOR UPDATE")
    assert await row_calls.write_late_rows(database, 1, ["1"]) == {}
    await form.execute("COMMIT")
    assert await row_calls.write_late_rows(database, 1, ["1"]) == {"1": "written"}


async def test_what_was_refused_is_tried_at_once_when_the_table_was_attached_again(
    database: Connection,
) -> None:
    """Row of section 6: column dropped or renamed: attach again mends it."""
    await inserted(database)
    claims = await begun(database)
    await database.execute("ALTER TABLE public.audits RENAME COLUMN retry_count TO retries")
    await completed(database, claims)
    before = await database.fetchval(NOW)
    await turn(database)
    due = "SELECT next_try_at <= $1 FROM hybrid_runner.late_rows"
    assert await database.fetchval(due, before + timedelta(seconds=1)) is False
    await database.execute("ALTER TABLE public.audits RENAME COLUMN retries TO retry_count")
    await attach(database)
    assert await database.fetchval(due, await database.fetchval(NOW)) is True
    await WriteLateRows(Tables()).run(database)
    assert (await rows(database))[0]["status"] == "completed"


async def test_late_rows_of_a_table_that_takes_too_long_do_not_hold_up_those_of_another(
    database: Connection, another: Another
) -> None:
    await inserted(database)
    claims = await begun(database)
    await database.execute(AUDITS.replace("public.audits", "public.others"))
    await attach_table(database, "public.others", columns=COLUMNS)
    await database.execute("INSERT INTO public.others (website_url) VALUES ('b.example')")
    claims += await begun(database, 2)
    form = await another()
    await form.execute(
        "BEGIN; SELECT FROM public.audits FOR UPDATE; SELECT FROM public.others FOR UPDATE"
    )
    await completed(database, claims)
    await form.execute("COMMIT")
    await database.execute(
        "CREATE FUNCTION public.sleep() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;"
        "CREATE TRIGGER sleep BEFORE UPDATE ON public.audits"
        " FOR EACH ROW EXECUTE FUNCTION public.sleep();"
        "SET statement_timeout = '3s'"
    )
    await turn(database)
    word = "SELECT status FROM public.others"
    assert await database.fetchval(word) == "completed"
    assert (await rows(database))[0]["status"] == "processing"
