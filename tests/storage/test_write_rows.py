"""What becomes of a job is written into the row that it is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits, read_row

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])


async def row(database: Connection) -> dict[str, Any]:
    found = await database.fetch("SELECT * FROM public.audits ORDER BY id")
    return dict(found[-1])


async def claimed(database: Connection, number: int = 1) -> Any:
    result = await claim_calls.claim_jobs(database, "default", KINDS, 10, "worker-1", number)
    return result.claims


async def test_a_row_shows_its_job_from_the_claim_to_the_end(database: Connection) -> None:
    """D3, D7."""
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    (claim,) = await claimed(database)
    assert (claim.source, claim.row_key) == (1, "1")
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "written"
    assert '"website_url":"a.example"' in (await read_row(database, claim) or "")
    now = await row(database)
    assert now["status"] == "processing"
    assert now["processing_worker_id"] == "worker-1"
    assert now["retry_count"] == 0
    assert now["processing_started_at"] == claim.started_at
    done = Finished(claim, State.COMPLETED, result='{"score": 7}')
    assert await claim_calls.finish_jobs(database, [done]) == {claim.id}
    now = await row(database)
    assert now["status"] == "completed"
    assert now["raw_data"] == '{"score": 7}'
    assert now["finished_at"] is not None


async def test_a_row_that_somebody_holds_is_late_and_nothing_waits(
    database: Connection, dsn: str
) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    form = await connect(dsn)
    (claim,) = await claimed(database)
    async with form.transaction():
        await form.execute("SELECT FROM public.audits FOR UPDATE")
        shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
        assert shown[claim.id].outcome == "locked"
        assert await read_row(database, claim) is not None
        done = Finished(claim, State.COMPLETED, result="1")
        assert await claim_calls.finish_jobs(database, [done]) == {claim.id}
    late = await database.fetchrow("SELECT * FROM hybrid_runner.late_rows")
    assert late is not None
    assert late["job_id"] == claim.id
    assert late["tries"] == 1
    assert late["seen"] == await database.fetchval("SELECT xmin::text FROM public.audits")
    await form.close()


async def test_a_row_wanted_anew_while_its_job_runs_gets_a_new_job(database: Connection) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    (claim,) = await claimed(database)
    await source_calls.show_claims(database, [(claim.id, claim.number)])
    await database.execute("UPDATE public.audits SET status = 'pending'")
    await claim_calls.finish_jobs(database, [Finished(claim, State.COMPLETED, result="1")])
    assert (await row(database))["status"] == "pending"
    (again,) = await claimed(database, 2)
    assert again.id != claim.id
    assert again.row_key == "1"


async def test_a_row_that_is_not_wanted_any_more_is_not_begun(database: Connection) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    await database.execute("UPDATE public.audits SET status = 'archived'")
    (claim,) = await claimed(database)
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert (shown[claim.id].outcome, shown[claim.id].word) == ("unwanted", "archived")


async def test_what_is_put_back_shows_as_wanted(database: Connection) -> None:
    """D6."""
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    (claim,) = await claimed(database)
    await source_calls.show_claims(database, [(claim.id, claim.number)])
    put_back = Requeued(claim, timedelta(0), charged=True, error='{"message": "no answer"}')
    assert await claim_calls.requeue_jobs(database, [put_back]) == {claim.id}
    now = await row(database)
    assert (now["status"], now["retry_count"], now["error"]) == ("pending", 1, "no answer")
    assert now["processing_worker_id"] is None
    assert now["processing_started_at"] is None


async def test_cancel_and_retry_show_on_the_row(database: Connection) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"
    assert (await row(database))["status"] == "failed"
    assert await database.fetchval("SELECT hybrid_runner.retry($1)", job) == "queued"
    assert (await row(database))["status"] == "pending"


@pytest.mark.parametrize(
    "statements",
    [("{update}", "{cancel}"), ("{cancel}", "{update}"), ("SAVEPOINT s; {update}", "{cancel}")],
)
async def test_job_cancelled_beside_a_write_of_another_column_stays_cancelled(
    database: Connection, statements: tuple[str, ...]
) -> None:
    """In one transaction, and not: what was cancelled is no new want."""
    await attach_audits(database)
    for number, is_one in enumerate((True, False), 1):
        await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
        job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
        both = [
            each.format(
                update=f"UPDATE public.audits SET website_url = 'b' WHERE id = {number}",
                cancel=f"SELECT hybrid_runner.cancel({job})",
            )
            for each in statements
        ]
        if is_one or "SAVEPOINT" in both[0]:
            both = [f"BEGIN; {'; '.join(both)}; COMMIT"]
        for statement in both:
            await database.execute(statement)
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0


async def test_job_run_again_beside_a_write_of_another_column_runs(database: Connection) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    await database.execute("SELECT hybrid_runner.cancel($1)", job)
    await database.execute(
        f"BEGIN; UPDATE public.audits SET website_url = 'b'; SELECT hybrid_runner.retry({job});"
        " UPDATE public.audits SET website_url = 'c'; COMMIT"
    )
    await database.execute("UPDATE public.audits SET website_url = 'd'")
    assert (await row(database))["status"] == "pending"
    [claim] = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "worker-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "written"


async def test_want_saved_by_a_form_after_a_cancel_gets_a_new_job(
    database: Connection, dsn: str
) -> None:
    """The form held the row when its job was cancelled."""
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    form = await connect(dsn)
    async with form.transaction():
        await form.execute("SELECT FROM public.audits FOR UPDATE")
        assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"
        await form.execute("UPDATE public.audits SET website_url = 'b'")
    await form.close()
    assert await row_calls.write_late_rows(database, 1, ["1"]) == {"1": "again"}
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1


async def test_a_row_that_refuses_its_word_stops_no_job(database: Connection) -> None:
    await attach_audits(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    (claim,) = await claimed(database)
    await source_calls.show_claims(database, [(claim.id, claim.number)])
    await database.execute(
        "ALTER TABLE public.audits ADD CONSTRAINT words CHECK (status <> 'completed')"
    )
    done = Finished(claim, State.COMPLETED, result="1")
    assert await claim_calls.finish_jobs(database, [done]) == {claim.id}
    why = await database.fetchval("SELECT why FROM hybrid_runner.late_rows")
    assert 'violates check constraint "words"' in why
