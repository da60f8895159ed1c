"""For tests/storage: test_settle, test_ring, test_plans, test_producer_role."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.storage.test_plans import BATCH, CLAIM, LANES, explain, rows_read, scans
from tests.support.jobs import enqueue, running
from tests.support.rings import listening
from tests.support.server import Databases


async def test_only_the_claim_that_archived_a_job_finds_it_archived(database: Connection) -> None:
    """A4: the outcome of a stale claim is not taken for one whose answer was lost."""
    taken = await running(database)
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED)])
    assert await claim_calls.archived_before(database, [Finished(taken, State.COMPLETED)]) == {
        taken.id
    }
    stale = replace(taken, number=taken.number + 1)
    assert await claim_calls.archived_before(database, [Finished(stale, State.COMPLETED)]) == set()


async def test_a_replaced_job_rings_for_when_it_is_due_now(dsn: str, database: Connection) -> None:
    await enqueue(database, key="k", delay=timedelta(hours=1))
    async with listening(dsn) as rings:
        done = await client_calls.enqueue_job(database, NewJob("work", key="k"), "replace")
        assert (done.enqueued, await rings.so_far()) == ("replaced", [""])


async def test_a_claim_does_not_read_what_is_not_due(databases: Databases, template: str) -> None:
    """A8: "run_at <= clock_timestamp()" would be a filter and walk all jobs of the future."""
    with databases.fresh(template) as dsn:
        connection = await connect(dsn)
        await connection.execute(
            "INSERT INTO hybrid_runner.jobs (kind, run_at) SELECT 'work', now() + CASE WHEN n > 10"
            " THEN interval '1 day' ELSE interval '-1 s' END FROM generate_series(1, 20000) AS n"
        )
        await connection.execute("ANALYZE hybrid_runner.jobs")
        plan = await explain(connection, *CLAIM)
        await connection.close()
    assert 0 < sum(rows_read(node) for node in scans(plan)) <= 2 * BATCH + len(LANES)


async def test_functions_that_run_as_their_owner_look_nowhere_else(database: Connection) -> None:
    loose = await database.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'hybrid_runner'::regnamespace AND"
        " prosecdef AND NOT coalesce(proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false)"
    )
    assert [row[0] for row in loose] == []
