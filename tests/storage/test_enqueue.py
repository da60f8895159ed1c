from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from hybrid_runner.errors import DatabaseError, EnqueueError, KeyTaken
from hybrid_runner.model.jobs import NewJob, OnConflict, State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, ended, enqueue, running
from tests.support.waiting import until_blocked

Another = Callable[[], Awaitable[Connection]]
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def enqueue_work(
    connection: Connection, on_conflict: OnConflict, priority: int = 5
) -> tuple[int, str]:
    """Enqueue under the key `k`; the id and the outcome."""
    return await client_calls.enqueue_job(
        connection, NewJob("work", key="k", priority=priority), on_conflict
    )


async def test_a_job_without_a_key_is_always_inserted(database: Connection) -> None:
    first = await client_calls.enqueue_job(database, NewJob("work"), "error")
    second = await client_calls.enqueue_job(database, NewJob("work"), "error")
    assert (first.enqueued, second.enqueued) == ("inserted", "inserted")
    assert second.id > first.id


async def test_every_field_arrives(database: Connection) -> None:
    due, end = datetime(2031, 1, 2, tzinfo=UTC), datetime(2032, 1, 2, tzinfo=UTC)
    job = NewJob(
        "work",
        '{"a": 1}',
        "images",
        "k",
        2,
        due,
        None,
        7,
        timedelta(seconds=9),
        end,
        '{"b": 2}',
        TRACE,
    )
    free = _without_key(job)
    stored = [await client_calls.enqueue_job(database, job, "error")]
    stored += await client_calls.enqueue_many(database, [free, free], "error")
    stored += (await client_calls.enqueue_many(database, [NewJob("work"), free], "error"))[1:]
    stored += (await client_calls.enqueue_many(database, [NewJob("work", key="x"), free], "error"))[
        1:
    ]
    assert len(stored) == 5
    for number, _ in stored:
        view = await client_calls.get_job(database, number)
        assert view is not None
        assert (view.kind, view.payload, view.queue, view.priority, view.run_at) == (
            "work",
            {"a": 1},
            "images",
            2,
            due,
        )
        assert (view.max_attempts, view.timeout, view.finish_by, view.data) == (
            7,
            timedelta(seconds=9),
            end,
            {"b": 2},
        )
        assert (view.traceparent, view.state, view.attempt, view.version) == (
            TRACE,
            State.QUEUED,
            0,
            1,
        )


async def test_a_delay_counts_from_now_on_the_servers_clock(database: Connection) -> None:
    job = await enqueue(database, delay=timedelta(hours=1))
    late = await database.fetchval(
        "SELECT run_at - created_at FROM hybrid_runner.jobs WHERE id = $1", job
    )
    assert timedelta(minutes=59) < late <= timedelta(hours=1)


async def test_a_conflict_says_which_job_exists_and_changes_nothing(database: Connection) -> None:
    """B2"""
    first = await enqueue_work(database, "exists", priority=1)
    assert await enqueue_work(database, "exists", priority=9) == (first[0], "exists")
    view = await client_calls.get_job(database, first[0])
    assert view is not None
    assert (view.priority, view.version) == (1, 1)


async def test_a_conflict_replaces_a_job_that_waits(database: Connection) -> None:
    first = await enqueue_work(database, "exists", priority=1)
    assert await enqueue_work(database, "replace", priority=9) == (first[0], "replaced")
    view = await client_calls.get_job(database, first[0])
    assert view is not None
    assert (view.priority, view.version) == (9, 2)


async def test_a_job_that_runs_is_not_replaced(database: Connection) -> None:
    taken = await running(database, key="k")
    assert await enqueue_work(database, "replace", priority=9) == (taken.id, "exists")


async def test_a_conflict_can_be_an_error_that_names_the_holder(database: Connection) -> None:
    first = await enqueue_work(database, "exists")
    with pytest.raises(KeyTaken, match=f"key 'k' is held by live job {first[0]}"):
        await enqueue_work(database, "error")


async def test_a_key_is_free_again_when_its_job_has_ended(database: Connection) -> None:
    job = await ended(database, key="k")
    number, outcome = await enqueue_work(database, "error")
    assert outcome == "inserted"
    assert number != job


@pytest.mark.parametrize("function", ["enqueue", "enqueue_job"])
async def test_a_time_and_a_delay_together_are_refused(function: str, database: Connection) -> None:
    """The delay would be ignored without a word."""
    with pytest.raises(asyncpg.InvalidParameterValueError, match="give run_at or delay, not both"):
        await database.execute(
            f"SELECT hybrid_runner.{function}('work', run_at => now(), delay => '1 hour')"
        )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_an_unknown_way_to_handle_conflicts_is_refused(database: Connection) -> None:
    with pytest.raises(
        EnqueueError,
        match="on_conflict must be exists, replace, error, follow or collect, not perhaps",
    ):
        await client_calls.enqueue_job(database, NewJob("work"), "perhaps")  # type: ignore[arg-type]  # that is the point


async def test_many_who_enqueue_one_key_at_once_get_one_job(
    database: Connection, another: Another
) -> None:
    """B2"""
    connections = [await another() for _ in range(16)]
    answers = await asyncio.gather(
        *(enqueue_work(connection, "exists") for connection in connections)
    )
    assert sorted(outcome for _, outcome in answers) == ["exists"] * 15 + ["inserted"]
    assert len({number for number, _ in answers}) == 1


@pytest.mark.parametrize(("ends", "outcome"), [("commit", "exists"), ("rollback", "inserted")])
async def test_whoever_finds_an_uncommitted_holder_waits_for_its_end(
    ends: str, outcome: str, database: Connection, another: Another
) -> None:
    holder, waiter = await another(), await another()
    transaction = holder.transaction()
    await transaction.start()
    await enqueue_work(holder, "exists")
    waiting = asyncio.create_task(enqueue_work(waiter, "exists"))
    await until_blocked(database, waiter)
    await (transaction.commit() if ends == "commit" else transaction.rollback())
    assert (await waiting)[1] == outcome


async def test_a_holder_that_ends_meanwhile_leaves_the_key_free(
    database: Connection, another: Another
) -> None:
    taken = await running(database, key="k")
    finisher, waiter = await another(), await another()
    transaction = finisher.transaction()
    await transaction.start()
    await claim_calls.finish_jobs(finisher, [Finished(taken, State.COMPLETED)])
    waiting = asyncio.create_task(enqueue_work(waiter, "exists"))
    await until_blocked(database, waiter)
    await transaction.commit()
    assert (await waiting)[1] == "inserted"


async def test_a_job_belongs_to_its_producers_transaction(
    database: Connection, another: Another
) -> None:
    worker = await another()
    transaction = database.transaction()
    await transaction.start()
    await enqueue(database)
    await client_calls.enqueue_many(database, [NewJob("work"), NewJob("work", key="k")], "exists")
    assert await claim(worker) == []
    await transaction.rollback()
    assert await claim(worker) == []


@pytest.mark.parametrize("priorities", [1, 3], ids=["alike", "different"])
async def test_ten_thousand_jobs_go_in_one_statement_and_keep_their_order(
    priorities: int, database: Connection
) -> None:
    jobs = [NewJob("work", payload=str(n), priority=n % priorities) for n in range(10_000)]
    answers = await client_calls.enqueue_many(database, jobs, "exists")
    stored = {
        row[0]: row[1] for row in await database.fetch("SELECT id, payload FROM hybrid_runner.jobs")
    }
    assert [stored[number] for number, _ in answers] == [str(n) for n in range(10_000)]


async def test_many_jobs_with_keys_are_answered_one_by_one_in_order(database: Connection) -> None:
    waiting = await enqueue(database, key="there")
    batch = [
        NewJob("work", key="new"),
        NewJob("work", key="there"),
        NewJob("work"),
        NewJob("work", key="new"),
    ]
    first, second, third, fourth = await client_calls.enqueue_many(database, batch, "exists")
    assert [e.enqueued for e in (first, second, third, fourth)] == [
        "inserted",
        "exists",
        "inserted",
        "exists",
    ]
    assert (second.id, fourth.id) == (waiting, first.id)
    with pytest.raises(KeyTaken):
        await client_calls.enqueue_many(database, batch, "error")


@pytest.mark.parametrize(
    "last", [NewJob("work"), NewJob("work", priority=1), NewJob("work", key="k")], ids=str
)
async def test_one_payload_that_is_not_json_keeps_all_of_them_out(
    last: NewJob, database: Connection
) -> None:
    with pytest.raises((DatabaseError, EnqueueError), match="json") as refusal:
        await client_calls.enqueue_many(
            database, [NewJob("work"), NewJob("work", "{"), last], "exists"
        )
    assert "\n" not in str(refusal.value)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_no_jobs_are_a_batch_too(database: Connection) -> None:
    assert await client_calls.enqueue_many(database, [], "exists") == []


async def test_the_sql_function_returns_the_id_and_notes_a_conflict(database: Connection) -> None:
    """F5"""
    notices: list[str] = []
    database.add_log_listener(
        lambda _, message: notices.append(str(getattr(message, "message", message)))
    )
    call = (
        "SELECT hybrid_runner.enqueue('work', '{\"a\": 1}', queue => 'images', key => 'k', priority"
        " => 1, delay => '1 hour')"
    )
    first = await database.fetchval(call)
    assert notices == []
    assert await database.fetchval(call) == first
    assert notices == [
        (
            f"key 'k' is held by live job {first}: nothing was stored (enqueue_job() returns this"
            " as a column)"
        )
    ]


@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')",
        "SELECT hybrid_runner.enqueue('work')",
    ],
)
async def test_sql_producers_hand_their_trace_over_by_a_setting(
    insert: str, database: Connection
) -> None:
    """F4, F5"""
    async with database.transaction():
        await database.execute(f"SET LOCAL hybrid_runner.traceparent = '{TRACE}'")
        await database.execute(insert)
    await database.execute(insert)
    rows = await database.fetch("SELECT traceparent FROM hybrid_runner.jobs ORDER BY id")
    assert [row[0] for row in rows] == [TRACE, None]


@pytest.mark.parametrize("payload", ["{", "nope", ""])
async def test_what_is_not_json_is_refused_in_one_line(payload: str, database: Connection) -> None:
    with pytest.raises((DatabaseError, EnqueueError)) as refusal:
        await client_calls.enqueue_job(database, NewJob("work", payload), "exists")
    assert "json" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def _without_key(job: NewJob) -> NewJob:
    return NewJob(**{name: getattr(job, name) for name in NewJob.__slots__ if name != "key"})
