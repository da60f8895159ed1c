"""What holds for all jobs holds for those of an attached table: they are found, claimed in order,
and tried again after an outage.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.web.pages.reports import health_of, worker_numbers
from tests.support.attached import attach_audits
from tests.support.waiting import equals, until, until_fetched
from tests.support.working import runner, working

STATUS = "SELECT status FROM public.audits WHERE id = $1"
KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
SHOWING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'hybrid-runner rows' AND state = 'active'"
)
GATE = """
CREATE TABLE public.gate (opened bool);
CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.01); END LOOP;
    RETURN new;
END $$;
CREATE TRIGGER slow BEFORE UPDATE ON public.audits FOR EACH ROW
WHEN (new.status = 'processing') EXECUTE FUNCTION public.slow();
"""
OPEN = "INSERT INTO public.gate VALUES (true)"
END_ROWS_SESSION = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'hybrid-runner rows'"
)


async def wanted(database: Connection, url: str = "a.example") -> int:
    number: int = await database.fetchval(
        "INSERT INTO public.audits (website_url) VALUES ($1) RETURNING id", url
    )
    return number


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({}, "ring"),
        ({"listen_dsn": NOWHERE, "poll_base": "50ms", "poll_cap": "50ms"}, "sweep"),
    ],
)
async def test_a_row_is_found_by_its_ring_and_without_rings_by_a_poll(
    dsn: str, database: Connection, settings: dict[str, Any], way: str
) -> None:
    """A1, A3, D2"""
    await attach_audits(database)
    app = runner(dsn, **settings)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    async with working(app, deaf=bool(settings)) as worker:
        number = await wanted(database)
        await until_fetched(database, STATUS, "completed", number)
        assert worker.status().queues[0].found.get(way) == 1


async def test_rows_count_in_the_figures_of_health_as_any_job(
    dsn: str, database: Connection
) -> None:
    """A10, A11"""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    async with working(app) as worker:
        number = await wanted(database)
        await until_fetched(database, STATUS, "completed", number)
        await worker.settled(1)
        status = worker.status()
    numbers = worker_numbers(status)
    assert health_of(status)["healthy"]
    assert numbers["settled"] == {"completed": 1}
    assert sum(numbers["found"].values()) == 1


async def test_rows_are_begun_in_the_order_of_their_inserts(dsn: str, database: Connection) -> None:
    """A7, A13: one after the other, where there is one slot."""
    await attach_audits(database)
    numbers = [await wanted(database) for _ in range(20)]
    app, begun, ended = runner(dsn, slots=1), list[int](), list[int]()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> None:
        begun.append(row["id"])
        await asyncio.sleep(0)
        ended.append(row["id"])
        assert begun == ended

    async with working(app, deaf=True) as worker:
        await worker.settled(20)
    assert begun == numbers


async def test_an_old_claim_shows_nothing_and_beats_for_nobody(database: Connection) -> None:
    """A4, A6: whoever was declared dead cannot write over a later attempt."""
    await attach_audits(database)
    await wanted(database)
    [old] = (await claim_calls.claim_jobs(database, "default", KINDS, 1, "worker-1", 1)).claims
    await claim_calls.requeue_jobs(database, [Requeued(old, timedelta(0), charged=True)])
    [new] = (await claim_calls.claim_jobs(database, "default", KINDS, 1, "worker-2", 2)).claims
    await source_calls.show_claims(database, [(new.id, new.number)])
    before = await database.fetchrow("SELECT * FROM public.audits")
    assert await source_calls.show_claims(database, [(old.id, old.number)]) == {}
    assert await source_calls.beat_rows(database, [(old.id, old.number)]) == 0
    assert await claim_calls.finish_jobs(database, [Finished(old, State.FAILED)]) == set()
    assert await database.fetchrow("SELECT * FROM public.audits") == before
    assert before is not None
    assert (before["processing_worker_id"], before["retry_count"]) == ("worker-2", 1)
    assert await source_calls.beat_rows(database, [(new.id, new.number)]) == 1


async def test_rows_are_reached_by_their_keys_however_many_there_are(
    database: Connection,
) -> None:
    """A8: no statement of a job walks the table."""
    await attach_audits(database)
    await database.execute(
        "INSERT INTO public.audits (website_url, status)"
        " SELECT 'a.example', CASE WHEN n % 100 = 0 THEN 'pending' ELSE 'completed' END"
        " FROM generate_series(1, 20000) AS n"
    )
    await database.execute("VACUUM ANALYZE public.audits")
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 100, "worker-1", 1)).claims
    await database.execute("SELECT pg_stat_force_next_flush()")
    scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'audits'"
    before = await database.fetchval(scans)
    for few in (claims[:1], claims[1:]):
        keys = [(claim.id, claim.number) for claim in few]
        assert len(await source_calls.show_claims(database, keys)) == len(few)
        assert await source_calls.beat_rows(database, keys) == len(few)
        ends = [Finished(claim, State.COMPLETED, result="1") for claim in few]
        assert len(await claim_calls.finish_jobs(database, ends)) == len(few)
    await database.execute("SELECT pg_stat_force_next_flush()")
    assert await database.fetchval(scans) == before


async def test_a_session_that_is_lost_delays_rows_and_charges_none(
    dsn: str, database: Connection
) -> None:
    """A9: its statement is sent again."""
    await attach_audits(database)
    await database.execute(GATE)
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    async with working(app):
        number = await wanted(database)
        await until_fetched(database, SHOWING, 1)
        assert await database.fetchval(END_ROWS_SESSION) == 1
        await database.execute(OPEN)
        await until_fetched(database, STATUS, "completed", number)
    ended = await database.fetchrow("SELECT attempt, errors, history FROM hybrid_runner.archive")
    assert ended is not None
    assert tuple(ended) == (1, None, None)


async def test_a_table_that_somebody_locks_makes_its_jobs_wait_and_no_others(
    dsn: str, database: Connection
) -> None:
    """A9: as a migration of the application does; nothing is charged, all is done later."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> Any:
        return row["retry_count"]

    @app.job("plain")
    async def plain(_: Any) -> None: ...

    number, migrating = await wanted(database), await connect(dsn)
    async with migrating.transaction():
        await migrating.execute("LOCK TABLE public.audits IN ACCESS EXCLUSIVE MODE")
        async with working(app, deaf=True):
            await until_fetched(
                database,
                "SELECT errors -> -1 ->> 'message' LIKE '%lock timeout%' FROM hybrid_runner.jobs"
                " WHERE kind = 'audit' AND attempt = 0 AND errors IS NOT NULL",
                True,
            )
            handle = await app.enqueue("plain")
            await handle.wait(120)
    async with working(app):
        await until_fetched(database, STATUS, "completed", number)
    await migrating.close()
    assert await database.fetchval("SELECT raw_data FROM public.audits") == "0"


async def test_a_stop_does_not_wait_for_a_table_that_is_slow(
    dsn: str, database: Connection
) -> None:
    """A13, D6: the handler was not called yet; the row is wanted again."""
    await attach_audits(database)
    await database.execute(GATE)
    app, begun = runner(dsn), list[int]()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> None:
        begun.append(row["id"])

    async with working(app) as worker:
        number = await wanted(database)
        await until_fetched(database, SHOWING, 1)
        stopping = asyncio.create_task(worker.stop(timedelta(0)))
        await until(lambda: worker.status().queues[0].running, equals(0))
        await database.execute(OPEN)
        await stopping
    assert begun == []
    assert await database.fetchval(STATUS, number) == "pending"
    async with working(app):
        await until_fetched(database, STATUS, "completed", number)
