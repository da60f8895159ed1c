"""Jobs of attached rows that are cancelled or run again by hand: a worker writes their rows."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
INSERT = "INSERT INTO public.audits (website_url) VALUES ('a.example')"
STATUS = "SELECT status FROM public.audits"
JOBS = "SELECT count(*) FROM hybrid_runner.jobs"
CANCEL = "SELECT hybrid_runner.cancel($1)"
RETRY = "SELECT hybrid_runner.retry($1)"


async def queued(database: Connection) -> int:
    await attach_audits(database)
    await database.execute(INSERT)
    job: int = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    return job


async def write_late(database: Connection) -> dict[str, str]:
    return await row_calls.write_late_rows(database, 1, ["1"])


async def claimed(database: Connection, number: int = 1) -> list[Any]:
    found = await claim_calls.claim_jobs(database, "default", KINDS, 9, "worker-1", number)
    return list(found.claims)


async def show(database: Connection, claims: list[Any]) -> list[str]:
    shown = await source_calls.show_claims(database, [(one.id, one.number) for one in claims])
    return [row.outcome for row in shown.values()]


async def finish(database: Connection, claims: list[Any]) -> None:
    await claim_calls.finish_jobs(
        database, [Finished(one, State.COMPLETED, result="1") for one in claims]
    )


async def test_cancelled_job_leaves_its_row_to_a_worker_and_stays_cancelled(
    database: Connection,
) -> None:
    job = await queued(database)
    before = await database.fetchval("SELECT xmin::text FROM public.audits")
    assert await database.fetchval(CANCEL, job) == "cancelled"
    assert await database.fetchval("SELECT xmin::text FROM public.audits") == before
    assert await write_late(database) == {"1": "written"}
    assert await database.fetchval(STATUS) == "failed"
    assert await database.fetchval(JOBS) == 0


async def test_row_written_after_its_job_was_cancelled_gets_a_new_job(
    database: Connection,
) -> None:
    """It keeps its word, so no trigger tells of it."""
    job = await queued(database)
    await database.fetchval(CANCEL, job)
    await database.execute("UPDATE public.audits SET website_url = 'b.example'")
    assert await write_late(database) == {"1": "again"}
    assert await database.fetchval(STATUS) == "pending"
    assert await database.fetchval(JOBS) == 1


async def test_row_held_since_before_its_job_was_cancelled_is_cancelled(
    database: Connection, dsn: str
) -> None:
    job = await queued(database)
    form = await connect(dsn)
    async with form.transaction():
        await form.execute("UPDATE public.audits SET website_url = 'b.example'")
        await database.fetchval(CANCEL, job)
        assert await write_late(database) == {"1": "locked"}
    assert await write_late(database) == {"1": "written"}
    assert await database.fetchval(STATUS) == "failed"
    await form.close()


WRITES = {
    "before": "{}",
    "in a savepoint before": "SAVEPOINT one; {}; RELEASE one",
    "in two savepoints before": "SAVEPOINT one; SAVEPOINT two; {}; RELEASE one",
    "and a savepoint was opened": "{}; SAVEPOINT one",
}
UPDATE = "UPDATE public.audits SET website_url = 'b.example'"


@pytest.mark.parametrize("is_inserted", [False, True])
@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES)
async def test_row_written_in_the_transaction_of_its_cancel_is_cancelled(
    database: Connection, writes: str, is_inserted: bool
) -> None:
    if is_inserted:
        await attach_audits(database)
    else:
        await queued(database)
    async with database.transaction():
        await database.execute(writes.format(INSERT if is_inserted else UPDATE))
        job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
        assert await database.fetchval(CANCEL, job) == "cancelled"
    assert await write_late(database) == {"1": "written"}
    assert await database.fetchval(STATUS) == "failed"
    assert await database.fetchval(JOBS) == 0


@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES)
async def test_row_written_in_the_transaction_of_its_retry_runs_again(
    database: Connection, writes: str
) -> None:
    job = await queued(database)
    claims = await claimed(database)
    await show(database, claims)
    await finish(database, claims)
    async with database.transaction():
        await database.execute(writes.format(UPDATE))
        assert await database.fetchval(RETRY, job) == "queued"
    assert await show(database, await claimed(database, 2)) == ["written"]


async def test_row_held_by_a_transaction_younger_than_that_of_the_cancel_is_cancelled(
    database: Connection, dsn: str
) -> None:
    job = await queued(database)
    form = await connect(dsn)
    async with form.transaction():
        async with database.transaction():
            await database.fetchval("SELECT pg_current_xact_id()::text")
            await form.execute(UPDATE)
            await database.fetchval(CANCEL, job)
        assert await write_late(database) == {"1": "locked"}
    assert await write_late(database) == {"1": "written"}
    await form.close()


async def test_end_that_the_application_wrote_outlives_a_cancel(database: Connection) -> None:
    job = await queued(database)
    await database.execute("UPDATE public.audits SET status = 'completed'")
    await database.fetchval(CANCEL, job)
    assert await write_late(database) == {"1": "kept"}
    assert await database.fetchval(STATUS) == "completed"


async def test_job_run_again_leaves_its_row_to_a_worker(database: Connection) -> None:
    job = await queued(database)
    claims = await claimed(database)
    await show(database, claims)
    await finish(database, claims)
    assert await database.fetchval(RETRY, job) == "queued"
    assert await database.fetchval(STATUS) == "completed"
    assert await write_late(database) == {"1": "written"}
    assert await database.fetchval(STATUS) == "pending"


@pytest.mark.parametrize("is_changed", [False, True])
async def test_job_run_again_begins_before_its_row_shows_it(
    database: Connection, is_changed: bool
) -> None:
    """Unless the application has written an end of its own since."""
    job = await queued(database)
    claims = await claimed(database)
    await show(database, claims)
    await finish(database, claims)
    await database.fetchval(RETRY, job)
    if is_changed:
        await database.execute("UPDATE public.audits SET status = 'failed'")
    again = await claimed(database, 2)
    assert await show(database, again) == (["unwanted"] if is_changed else ["written"])


async def test_job_run_again_and_cancelled_shows_as_cancelled(database: Connection) -> None:
    job = await queued(database)
    claims = await claimed(database)
    await show(database, claims)
    await finish(database, claims)
    await database.fetchval(RETRY, job)
    assert await database.fetchval(CANCEL, job) == "cancelled"
    assert await write_late(database) == {"1": "written"}
    assert await database.fetchval(STATUS) == "failed"
