"""Every supported PostgreSQL: the schema, the path of a job, the ring, the functions. Versions that
are absent are skipped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from hybrid_runner.attach.checking import check
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.model.signals import Forgotten, Given, Swept
from hybrid_runner.model.sources import Expression
from hybrid_runner.storage import claim_calls, client_calls, signal_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.storage.queries import functions, migrations, query, sql_folder
from hybrid_runner.upkeep.duties.prune import Prune
from tests.attach.definitions import AUDITS, asked
from tests.support import versions
from tests.support.archive import aged, partition
from tests.support.jobs import KINDS, claim, enqueue
from tests.support.outside import missing
from tests.support.rings import listening
from tests.support.server import embedded
from tools.roles import make_groups


@pytest.fixture(scope="module", params=versions.MAJORS)
def version_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A migrated database on that version, shared by the tests here."""
    programs = versions.find().get(request.param)
    if programs is None:
        missing(versions.why_absent(request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BINARIES_VARIABLE, str(programs))
        with embedded() as postgres:
            assert asyncio.run(_migrated(postgres.dsn)) == request.param
            yield postgres.dsn


async def _migrated(dsn: str) -> int:
    connection = await connect(dsn)
    await make_groups(connection)
    assert len(await migrate(connection)) == len(migrations())
    assert await migrate(connection) == []
    major = connection.get_server_version().major
    await connection.close()
    return major


@pytest.fixture
async def connection(version_dsn: str) -> AsyncIterator[Connection]:
    """A connection to it; the jobs of earlier tests are gone."""
    connection = await connect(version_dsn)
    await connection.execute("TRUNCATE hybrid_runner.jobs, hybrid_runner.archive")
    yield connection
    await connection.close()


async def test_a_job_goes_from_insert_to_archive(connection: Connection) -> None:
    """A4, A6, D2, D7, F5"""
    inserted = await connection.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('work', '{}') RETURNING id"
    )
    many = await client_calls.enqueue_many(
        connection, [NewJob("work"), NewJob("work", key="k")], "exists"
    )
    taken = await claim(connection)
    assert [c.id for c in taken] == [inserted, *(e.id for e in many)]
    assert await claim_calls.finish_jobs(
        connection, [Finished(c, State.COMPLETED, result="1") for c in taken[:2]]
    ) == {c.id for c in taken[:2]}
    again = Requeued(taken[2], timedelta(0), charged=True, error='{"message": "x"}')
    assert await claim_calls.requeue_jobs(connection, [again]) == {taken[2].id}
    assert [c.attempt for c in await claim(connection)] == [2]
    view = await client_calls.get_job(connection, inserted)
    assert view is not None
    assert (view.state, view.result) == (State.COMPLETED, 1)


async def test_what_follows_an_end_is_stored_with_it(connection: Connection) -> None:
    """B1, B11"""
    await connection.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue, on_end)"
        " VALUES ('work', 'default', 'clean-up')"
    )
    await enqueue(connection, payload=json.dumps("x" * 1048574), key="k")
    [taken] = await claim(connection)
    poll = NewJob("poll", key="k", delay=timedelta(hours=1.5), max_duration=timedelta(minutes=29))
    ending = Finished(taken, State.COMPLETED, result="1", follow_ups=(poll, poll))
    assert await claim_calls.finish_jobs(connection, [ending]) == {taken.id}
    rows = await connection.fetch(
        "SELECT id, kind, key,"
        " payload ->> 'left_out', run_at > now() + '89 m' FROM hybrid_runner.jobs ORDER BY id"
    )
    assert [tuple(row)[1:] for row in rows] == [
        ("poll", "k", None, True),
        ("clean-up", f"ended:{taken.id}", '["result", "payload"]', False),
    ]
    view = await client_calls.get_job(connection, taken.id)
    assert view is not None
    assert view.followed_by == [row["id"] for row in rows]
    await connection.execute("DELETE FROM hybrid_runner.kinds")


async def test_an_insert_rings_and_a_mute_is_heeded(
    version_dsn: str, connection: Connection
) -> None:
    """F3"""
    bell = await connection.fetchval("SELECT hybrid_runner.open_queue('default')")
    async with listening(version_dsn) as rings:
        await enqueue(connection)
        await enqueue(connection, delay=timedelta(seconds=30))
        assert await rings.so_far() == ["", "later"]
        await connection.fetchval(
            "SELECT setval($1::text::regclass, extract(epoch FROM now())::bigint * 1000 + 30000)",
            bell,
        )
        await enqueue(connection)
        assert await rings.so_far() == []
        await connection.fetchval("SELECT setval($1::text::regclass, 0)", bell)
        await enqueue(connection)
        assert await rings.so_far() == [""]


async def test_the_functions_answer(connection: Connection) -> None:
    """A5, B6"""
    first = await client_calls.enqueue_job(connection, NewJob("work", key="k"), "exists")
    assert await client_calls.enqueue_job(connection, NewJob("work", key="k"), "exists") == (
        first.id,
        "exists",
    )
    assert await client_calls.enqueue_job(connection, NewJob("work", key="k"), "replace") == (
        first.id,
        "replaced",
    )
    assert await connection.fetchval("SELECT hybrid_runner.enqueue('work', key => 'k')") == first.id
    assert await client_calls.amend_job(connection, first.id, 2, None, 1, None, None) == "amended"
    assert await client_calls.cancel_job(connection, first.id, None) == "cancelled"
    assert await client_calls.retry_job(connection, first.id) == "queued"
    assert await client_calls.pause_queue(connection, "default")
    assert (
        await claim_calls.claim_jobs(connection, "default", KINDS, 10, "worker-1", 1)
    ).claims == []
    assert await client_calls.resume_queue(connection, "default")
    assert await claim_calls.next_due(connection, "default") is None
    assert await worker_calls.make_archive_partitions(connection, 9) >= 0


@pytest.mark.usefixtures("within_an_hour")
async def test_what_is_no_longer_kept_is_dropped_and_the_rest_written_anew(
    connection: Connection,
) -> None:
    """B15"""
    whole, some = [
        await partition(connection, "archive_completed", hours * 60, (hours - 1) * 60)
        for hours in (40, 4)
    ]
    [gone], [other] = await aged(connection, 39 * 60 + 1), await aged(connection, 3 * 60 + 1)
    [kept] = await aged(connection, 3 * 60 + 1, kind="report")
    await worker_calls.keep_jobs(connection, [(State.COMPLETED, "report", timedelta(hours=36))])
    done = [(one.what, one.partition) for one in await Prune().run(connection)]
    assert done == [("dropped", whole), ("rewritten", some)]
    assert [
        status.id for status in await client_calls.watch_jobs(connection, [gone, other, kept])
    ] == [kept]
    assert await client_calls.retry_job(connection, kept) == "queued"
    assert [
        cause for cause, _ in await worker_calls.find_growth(connection, timedelta(minutes=10))
    ] == []


async def test_every_query_can_be_prepared(connection: Connection) -> None:
    for path in sorted((sql_folder() / "queries").glob("*.sql")):
        await connection.prepare(query(path.stem))


async def test_every_function_can_be_read(connection: Connection) -> None:
    for _, sql in functions():
        await connection.execute(sql)


async def test_a_producer_has_the_producers_rights_only(connection: Connection) -> None:
    """F5"""
    await connection.execute("SET ROLE hybrid_runner_producer")
    assert await connection.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work') RETURNING id"
    )
    assert (
        await connection.fetchval(
            "SELECT has_table_privilege('hybrid_runner.jobs', 'UPDATE, DELETE, SELECT')"
        )
        is False
    )


async def test_a_signal_wakes_the_job_that_waits_for_it(connection: Connection) -> None:
    await connection.execute("TRUNCATE hybrid_runner.signals, hybrid_runner.waits")
    job_id = await enqueue(connection)
    [taken] = await claim(connection)
    waits = Requeued(taken, timedelta(hours=1), charged=False, why="snooze", wake_on="k")
    await claim_calls.requeue_jobs(connection, [waits])
    sent = await signal_calls.send_signal(connection, "k", '{"a": 1}')
    assert await signal_calls.number_signals(connection, 10) == 1
    swept = await signal_calls.sweep_waiting(connection, "", 0, 10)
    assert swept == Swept("k", job_id, [job_id])
    assert await signal_calls.recent_keys(connection, timedelta(minutes=1), 10) == ["k"]
    assert await signal_calls.wake_by_keys(connection, ["k"], 10) == 1
    [again] = await claim(connection)
    given = Given(sent, '{"a": 1}')
    assert await signal_calls.take_signals(connection, [(job_id, again.number)]) == {job_id: given}
    assert await signal_calls.take_signal(connection, job_id, again.number, "k", 1) == given
    week = timedelta(days=7)
    assert await signal_calls.forget_signals(connection, week, 10) == Forgotten(0, 0)
    assert await signal_calls.forget_signals(connection, timedelta(0), 10) == Forgotten(1, 0)
    assert await signal_calls.forget_waits(connection, timedelta(0), 10) == 0


async def test_a_table_is_held_against_what_is_asked_of_it(connection: Connection) -> None:
    """What Postgres prints of an expression, and what it keeps of it, differs by version."""
    await connection.execute(AUDITS)
    transaction = connection.transaction()
    await transaction.start()
    when = "website_url LIKE 'https:%' AND (SELECT true)"
    with pytest.raises(ConfigurationError, match="--when has a sub-select"):
        await check(connection, asked(when=when), 1)
    when = "website_url = 'https:' || current_user"
    with pytest.raises(ConfigurationError, match="--when has the name of whoever asks"):
        await check(connection, asked(when=when), 1)
    found = await check(connection, asked(when="urgency > 2", run_at="created_at"), 1)
    assert found.source.condition == Expression(
        "((new.status = 'pending'::text)) AND ((new.urgency > 2))",
        "((old.status = 'pending'::text)) AND ((old.urgency > 2))",
    )
    assert found.source.run_at == Expression("new.created_at", "old.created_at")
    await transaction.rollback()
