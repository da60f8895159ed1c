"""The archive of a release that kept it in another way, carried over."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_runner.models import State
from hybrid_runner.outcomes import Finished
from hybrid_runner.storage import client_statements, statements
from hybrid_runner.storage.connections import connect
from hybrid_runner.storage.migrating import as_script, migrate
from tests.support.archive import keep, pruned
from tests.support.jobs import claim, ended, enqueue
from tests.support.waiting import until_blocked

DAY = 24 * 60
OLD_INSERT = (
    "INSERT INTO hybrid_runner.archive (id, queue, kind, priority, payload, run_at, state, attempt, version, created_at, "
    "finished_at) VALUES ($1, 'default', 'work', 5, '{}', now(), $2::text::hybrid_runner.job_state, 1, 1, now(), "
    "now() - make_interval(mins => $3))"
)


@pytest.mark.usefixtures("template")  # makes the roles
async def test_the_archive_of_an_older_release_is_carried_over_with_its_rights(empty_dsn: str) -> None:
    connection = await connect(empty_dsn)
    await connection.execute(as_script().partition("-- ---- 0011")[0])
    await connection.execute(
        "GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_worker; GRANT SELECT ON hybrid_runner.archive TO PUBLIC; "
        "GRANT SELECT, INSERT ON hybrid_runner.archive TO hybrid_runner_worker"
    )
    for days in (1, 3):  # made when that day was ahead
        await connection.execute(
            f"DO $$ DECLARE day timestamptz := date_trunc('day', now()) - make_interval(days => {days}); BEGIN "
            "EXECUTE format('CREATE TABLE hybrid_runner.%I PARTITION OF hybrid_runner.archive FOR VALUES FROM (%L) TO (%L)', "
            "'archive_' || to_char(day, 'YYYYMMDD'), day, day + interval '1 day'); END $$"
        )
    ages = [0, 1, 59, 61, DAY, 3 * DAY, 400 * DAY, -400 * DAY]
    for number, age in enumerate(ages):
        for place, state in enumerate((State.COMPLETED, State.FAILED, State.CANCELLED)):
            await connection.execute(OLD_INSERT, 3 * number + place + 1, state, age)
    old = await connect(empty_dsn)
    await old.execute("SET ROLE hybrid_runner_worker")
    insert = await old.prepare(OLD_INSERT)
    await insert.fetch(900, State.FAILED, 0)
    everything = "SELECT id, state::text, finished_at FROM hybrid_runner.all_jobs ORDER BY id"
    before = await connection.fetch(everything)
    await connection.execute(as_script(10).partition("-- ---- grants")[0])
    assert await connection.fetch(everything) == before
    await insert.fetch(1000, State.FAILED, 0)  # a statement of an old release, before the new rights were given
    assert await connection.fetchval("SELECT has_table_privilege('public', 'hybrid_runner.archive', 'SELECT')")
    await migrate(connection)
    assert await pruned(connection) == []  # their partition ends with the last hour
    await keep(connection, State.COMPLETED, "1 microsecond")
    assert ("dropped", "archive_completed_past") in await pruned(connection)
    left = {row[0] for row in await connection.fetch(everything)}
    assert not left & {10, 13, 16, 19}
    assert {2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 22, 23, 24, 900, 1000} <= left
    assert await client_statements.retry_job(connection, 20) == "queued"
    await old.close()
    await connection.close()


async def test_jobs_that_end_during_the_migration_wait_and_are_not_refused(empty_dsn: str) -> None:
    connection, settler = await connect(empty_dsn), await connect(empty_dsn)
    await connection.execute(as_script().partition("-- ---- 0011")[0] + "COMMIT")
    await connection.execute("ALTER TABLE hybrid_runner.workers ADD COLUMN running jsonb")  # today's statements know it
    await ended(settler)
    await enqueue(settler)
    [taken] = await claim(settler)
    step = (
        as_script(10).partition("-- ---- 0011 retention\n")[2].partition("-- ----")[0].replace("BEGIN;", "").replace("COMMIT;", "")
    )
    async with connection.transaction():
        await connection.execute(step)
        task = asyncio.ensure_future(statements.finish_jobs(settler, [Finished(taken, State.COMPLETED)]))
        await until_blocked(connection, settler)
    assert await task == {taken.id}
    assert await connection.fetchval("SELECT count(*) FROM hybrid_runner.archive") == 2
    await connection.close()
    await settler.close()
