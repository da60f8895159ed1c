"""A row that Postgres cannot read, or refuses to hand out, fails or waits alone."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest

from hybrid_runner import JobFailed, Runner
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.jobs import State
from hybrid_runner.storage import claim_calls, client_calls, stream_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.rescuer import Rescuer
from tests.support.faults import end_sessions
from tests.support.inside import make_outages_short
from tests.support.jobs import claim, enqueue
from tests.support.waiting import until
from tests.support.working import runner, working

NO_LIMITS = (
    "ALTER TABLE hybrid_runner.jobs"
    " DROP CONSTRAINT jobs_payload_is_at_most_1_mib_as_text,"
    " DROP CONSTRAINT jobs_data_is_at_most_1_mib_as_text"
)
"""From now on rows are written as they were before there were limits."""
LIMITS_ANEW = (
    "ALTER TABLE hybrid_runner.jobs ADD CONSTRAINT jobs_payload_is_at_most_1_mib_as_text"
    " CHECK (octet_length(payload::text) <= 1048576) NOT VALID"
)
UNREADABLE = (
    "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT 'echo', jsonb_agg(1e131071)"
    " FROM generate_series(1, 9000) RETURNING id"
)
ECHO = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('echo') RETURNING id"
RAISING = """
CREATE FUNCTION public.raise_for_odd() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN IF OLD.kind = 'odd' THEN RAISE EXCEPTION 'not today'; END IF; RETURN NEW; END $$;
CREATE TRIGGER raise_for_odd BEFORE UPDATE ON hybrid_runner.jobs
FOR EACH ROW EXECUTE FUNCTION public.raise_for_odd();
"""
ANY: tuple[None, None, None, int] = (None, None, None, 10)
COMPLETED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"
pytestmark = pytest.mark.usefixtures("short_outages")


@pytest.fixture
def short_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    make_outages_short(monkeypatch)


def echoing(dsn: str) -> Runner:
    app = runner(dsn)

    @app.job("echo")
    async def echo(payload: object) -> None: ...

    @app.job("odd")
    async def odd(payload: object) -> None: ...

    return app


async def test_a_row_that_cannot_be_printed_fails_alone_and_says_so(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(NO_LIMITS)
    job = await database.fetchval(UNREADABLE)
    for _ in range(5):
        await database.execute(ECHO)
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await worker.settled(6)
        assert worker.status().queues[0].errors == 0
        with pytest.raises(JobFailed, match="cannot be read"):
            await app.handle(job).wait(120)
        view = await app.get(job)
        assert view is not None
        assert (view.state, view.attempt, view.payload) == (State.FAILED, 1, None)
        assert view.errors[-1]["type"] == "PayloadUnreadable"
        assert len(await app.list_jobs()) == 6
    assert await database.fetchval(COMPLETED) == 5
    assert [m for m in caplog.messages if m.startswith("echo failed for good, attempt 1 of 5")]
    # What is in the archive can be read by anybody.
    await database.fetch("SELECT * FROM hybrid_runner.all_jobs")


async def test_a_row_older_than_a_limit_fails_alone(dsn: str, database: Connection) -> None:
    """Its claim violates the constraint: an UPDATE checks all of them."""
    await database.execute(NO_LIMITS)
    job = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES"
        " ('echo', to_jsonb(repeat('x', 2000000))) RETURNING id"
    )
    await database.execute(LIMITS_ANEW)
    for _ in range(5):
        await database.execute(ECHO)
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await worker.settled(6)
        view = await app.get(job)
    assert view is not None
    assert (view.state, view.attempt) == (State.FAILED, 1)
    assert "payload is at most 1 mib" in view.errors[-1]["message"]
    assert await database.fetchval(COMPLETED) == 5


@pytest.mark.parametrize("odd", [1, 100])
async def test_jobs_whose_claims_a_trigger_refuses_wait_and_the_others_run(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture, odd: int
) -> None:
    await database.execute(RAISING)
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind) SELECT 'odd' FROM generate_series(1, $1::int)", odd
    )
    for _ in range(5):
        await database.execute(ECHO)
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await worker.settled(5)
        await database.execute(ECHO)
        await worker.settled(6)
        status = worker.status().queues[0]
        assert (status.refused_jobs, status.refused_kinds) == (
            (1, ()) if odd == 1 else (0, ("odd",))
        )
    assert await database.fetchval(COMPLETED) == 6
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == odd
    assert any("not today" in message for message in caplog.messages)


@pytest.mark.parametrize(
    "ends",
    [
        "PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(60)",
        "RAISE EXCEPTION 'not today' USING ERRCODE = '57014'",
        "RAISE EXCEPTION 'not today' USING ERRCODE = '40P01'",
        "RAISE EXCEPTION 'not today' USING ERRCODE = '55P03'",
        "RAISE EXCEPTION 'not today' USING ERRCODE = '53400'",
    ],
    ids=["cancelled", "too long", "a deadlock", "a lock", "a limit"],
)
async def test_a_claim_that_postgres_gives_up_each_time_does_not_hold_up_its_queue(
    dsn: str, database: Connection, ends: str
) -> None:
    """It says of it what it says of a statement that met another one, or took too long."""
    await database.execute(RAISING.replace("RAISE EXCEPTION 'not today'", ends))
    odd = await enqueue(database, kind="odd")
    for _ in range(5):
        await database.execute(ECHO)
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await worker.settled(5)
        await database.execute(ECHO)
        await worker.settled(6)
        assert worker.status().queues[0].refused_jobs == 1
        job = await app.get(odd)
    assert job is not None
    assert (job.state, job.attempt) == (State.QUEUED, 0)


async def test_a_job_whose_refusal_takes_long_is_left_out_for_longer(
    dsn: str,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each try costs its queue that time."""
    monkeypatch.setattr("hybrid_runner.worker.queue.unclaimable.PAUSE", timedelta(0))
    raises = "RAISE EXCEPTION 'not today'"
    await database.execute(RAISING.replace(raises, f"PERFORM pg_sleep(0.5); {raises}"))
    await enqueue(database, kind="odd")
    async with working(echoing(dsn), deaf=True), asyncio.timeout(120):
        lines = await until(lambda: [m for m in caplog.messages if "left out for" in m])
    said = re.search(r"left out for (\d+) s", lines[0])
    assert said is not None
    assert int(said[1]) >= 5


async def test_a_job_that_was_refused_runs_once_it_no_longer_is(
    dsn: str,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("hybrid_runner.worker.queue.unclaimable.PAUSE", timedelta(milliseconds=50))
    await database.execute(RAISING)
    await enqueue(database, kind="odd")
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await until(lambda: any("left out" in message for message in caplog.messages))
        await database.execute("DROP TRIGGER raise_for_odd ON hybrid_runner.jobs")
        await worker.settled(1)


async def test_a_queued_row_that_cannot_be_read_is_listed_and_shown(
    dsn: str, database: Connection
) -> None:
    await database.execute(NO_LIMITS)
    job = await database.fetchval(UNREADABLE)
    assert [one.id for one in await client_calls.list_jobs(database, None, None, None, 10)] == [job]
    view = await client_calls.get_job(database, job)
    assert view is not None
    assert (view.kind, view.payload, [*view.unreadable]) == ("echo", None, ["payload"])
    assert "string buffer exceeds" in view.unreadable["payload"]


async def test_it_can_be_cancelled_and_its_end_reported(database: Connection) -> None:
    await database.execute(NO_LIMITS)
    job = await database.fetchval(UNREADABLE)
    assert await client_calls.cancel_job(database, job, None) == "cancelled"
    assert len(await client_calls.list_jobs(database, None, None, None, 10)) == 1
    taken = await worker_calls.take_unreported_ends(database, 10)
    assert [end.claim.id for end in taken.ends] == [job]
    await database.fetch("SELECT * FROM hybrid_runner.all_jobs")


async def damaged(database: Connection, column: str) -> tuple[int, int]:
    """Two jobs that ended, the first with a column that is read in vain: too large to be printed
    here, on a damaged disk it would be missing.
    """
    jobs = [await enqueue(database) for _ in range(2)]
    for job in jobs:
        assert await client_calls.cancel_job(database, job, None) == "cancelled"
    await database.execute(
        "ALTER TABLE hybrid_runner.archive DROP CONSTRAINT archive_result_is_at_most_1_mib_as_text"
    )
    await database.execute(
        f"UPDATE hybrid_runner.archive SET {column} = jsonb_build_array("
        "(SELECT jsonb_agg(1e131071) FROM generate_series(1, 9000))) WHERE id = $1",
        jobs[0],
    )
    return jobs[0], jobs[1]


async def test_a_damaged_error_hides_no_other_job_from_lists_and_reports(
    database: Connection,
) -> None:
    first, second = await damaged(database, "errors")
    listed = await client_calls.list_jobs(database, *ANY)
    assert [one.id for one in listed] == [second, first]
    taken = await worker_calls.take_unreported_ends(database, 10)
    assert {end.claim.id for end in taken.ends} == {first, second}


async def test_a_damaged_progress_hides_no_other_job_from_streams(database: Connection) -> None:
    jobs = await damaged(database, "progress")
    snapshots = await stream_calls.job_snapshots(database, jobs)
    assert {snapshot.id for snapshot in snapshots} == {*jobs}


async def test_a_damaged_result_fails_its_own_waits_alone(dsn: str, database: Connection) -> None:
    first, second = await damaged(database, "result")
    async with echoing(dsn) as app:
        ended = await asyncio.gather(
            *(app.handle(job).wait(50) for job in (first, second)), return_exceptions=True
        )
    assert [type(each).__name__ for each in ended] == ["ValueRefused", "JobCancelled"]


async def test_a_job_of_a_dead_worker_that_cannot_be_put_back_fails_alone(
    database: Connection,
) -> None:
    jobs = [await enqueue(database) for _ in range(3)]
    assert len(await claim(database, worker_id="gone")) == 3
    await database.execute(NO_LIMITS)
    await database.execute(
        "UPDATE hybrid_runner.jobs SET payload = to_jsonb(repeat('x', 2000000)) WHERE id = $1",
        jobs[1],
    )
    await database.execute(LIMITS_ANEW)
    rescuer = Rescuer(Registry())
    await rescuer.rescue(database)
    assert rescuer.rescued == 3
    state = {job.id: job.state for job in await client_calls.list_jobs(database, *ANY)}
    assert [state[job] for job in jobs] == [State.QUEUED, State.FAILED, State.QUEUED]


async def test_what_a_lost_claim_took_is_put_back_though_one_row_is_refused(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await database.execute(
            # A number that it may give out: with an older one upkeep would rescue them.
            "INSERT INTO hybrid_runner.jobs (kind, state, attempt, claim, worker_id)"
            " SELECT k.kind, 'running', 1, w.first_claim + 1000000 + k.n, w.id"
            " FROM hybrid_runner.workers AS w,"
            " unnest(ARRAY['echo', 'odd', 'echo']) WITH ORDINALITY AS k (kind, n) WHERE w.id = $1",
            worker.status().id,
        )
        await database.execute(RAISING)
        # It may have none yet: a worker that was only started has not claimed.
        await until(lambda: end_sessions(database, "hybrid-runner claims%"))
        await database.execute(ECHO)
        await worker.settled(3)
    assert any("refuses to put it back" in message for message in caplog.messages)


async def test_an_answer_that_cannot_be_read_is_no_lost_claim(
    dsn: str, database: Connection
) -> None:
    """Postgres has claimed the job; the driver cannot read one of its columns."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, created_at) VALUES ('echo', '294000-01-01')"
    )
    await database.execute(ECHO)
    app = echoing(dsn)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await worker.settled(2)
    states = "SELECT array_agg(state::text ORDER BY id) FROM hybrid_runner.archive"
    assert await database.fetchval(states) == ["failed", "completed"]


@pytest.mark.parametrize(
    "fails", ["PERFORM 1 / 0", "PERFORM public.too_deep(0)"], ids=["a value", "the stack's depth"]
)
async def test_a_trigger_that_fails_costs_no_job_its_payload(
    dsn: str, database: Connection, fails: str
) -> None:
    """Postgres calls it what it calls the fault of a row."""
    await database.execute(
        "CREATE FUNCTION public.too_deep(n int) RETURNS int LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN public.too_deep(n + 1); END $$;"
        "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {fails}; RETURN NEW; END $$;"
        "CREATE TRIGGER note BEFORE UPDATE ON hybrid_runner.jobs FOR EACH ROW"
        " WHEN (NEW.state = 'running') EXECUTE FUNCTION public.note()"
    )
    app = runner(dsn)

    @app.job("work")
    async def work(_: dict[str, int]) -> None: ...

    async with working(app) as worker:
        handle = await app.enqueue(work, {"precious": 1})
        await until(lambda: worker.status().queues[0].refused_jobs == 1)
        job = await handle.get()
    assert (job.state, job.payload) == (State.QUEUED, {"precious": 1})


async def test_a_job_never_runs_with_what_was_taken_out_of_it(
    dsn: str, database: Connection
) -> None:
    """Its worker has died after it took that out, before it could end the job."""
    await enqueue(database, payload='{"to": "somebody"}')
    [taken] = await claim(database)
    await claim_calls.forget_payload(database, taken)
    await database.execute(
        "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, worker_id = NULL"
    )
    app, ran = runner(dsn), list[object]()

    @app.job("work")
    async def work(payload: object) -> None:
        ran.append(payload)

    async with working(app):
        with pytest.raises(JobFailed):
            await app.handle(taken.id).wait(120)
    assert ran == []
