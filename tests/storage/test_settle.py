from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import JobView, NewJob, State
from hybrid_runner.model.news import CancelRequested
from hybrid_runner.model.settlements import FinalState, Finished, Requeued
from hybrid_runner.storage import claim_calls, client_calls, stream_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.beats import beat, told
from tests.support.jobs import claim, enqueue, living, running

Another = Callable[[], Awaitable[Connection]]
NOW = timedelta(0)


async def view(connection: Connection, job: int) -> JobView:
    """The job, which is there."""
    found = await client_calls.get_job(connection, job)
    assert found is not None
    return found


async def two_claims(connection: Connection) -> tuple[Claim, Claim]:
    """Two jobs that run, each claimed by itself."""
    return await running(connection), await running(connection)


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED])
async def test_an_ended_job_moves_to_the_archive_with_everything_it_had(
    state: FinalState, database: Connection
) -> None:
    """D7"""
    await enqueue(database, key="k", payload='{"a": 1}', data='{"b": 2}')
    [taken] = await claim(database)
    before = await view(database, taken.id)
    ending = Finished(taken, state, result='{"bytes": 3}', error='{"message": "why"}')
    assert await claim_calls.finish_jobs(database, [ending]) == {taken.id}
    after = await view(database, taken.id)
    assert after.finished_at is not None
    assert after == replace(
        before,
        state=state,
        version=before.version + 1,
        began_at=before.started_at,
        finished_at=after.finished_at,
        result={"bytes": 3},
        errors=[{"message": "why"}],
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_a_job_settles_once(database: Connection) -> None:
    """A4"""
    taken = await running(database)
    ending = Finished(taken, State.COMPLETED)
    assert await claim_calls.finish_jobs(database, [ending, ending]) == {taken.id}
    assert await claim_calls.finish_jobs(database, [ending]) == set()
    assert await claim_calls.requeue_jobs(database, [Requeued(taken, NOW, charged=True)]) == set()
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.all_jobs") == 1


async def test_two_who_settle_one_claim_at_once_have_one_winner(
    database: Connection, another: Another
) -> None:
    """A4"""
    taken = await running(database)
    connections = [await another() for _ in range(8)]
    won = await asyncio.gather(
        *(claim_calls.finish_jobs(c, [Finished(taken, State.COMPLETED)]) for c in connections)
    )
    assert sorted(map(len, won)) == [0] * 7 + [1]


async def test_a_stale_claim_changes_nothing(database: Connection) -> None:
    """A4: the job was taken away and runs elsewhere; the attempt number is the same."""
    stale = await running(database)
    await claim_calls.requeue_jobs(database, [Requeued(stale, NOW, charged=False)])
    [fresh] = await claim(database, worker_id="worker-2")
    before = await view(database, fresh.id)
    assert stale.attempt == fresh.attempt
    assert await claim_calls.finish_jobs(database, [Finished(stale, State.FAILED)]) == set()
    assert (
        await claim_calls.requeue_jobs(database, [Requeued(stale, NOW, charged=True, error="{}")])
        == set()
    )
    assert await claim_calls.record_progress(database, [(stale.id, stale.number, "1")]) == set()
    assert await view(database, fresh.id) == before
    assert await claim_calls.finish_jobs(database, [Finished(fresh, State.COMPLETED)]) == {fresh.id}


async def test_the_claim_of_one_job_does_not_settle_another(database: Connection) -> None:
    """A4: each id goes with its own claim, also within one batch."""
    first, second = await two_claims(database)
    crossed = [replace(first, number=second.number), replace(second, number=first.number)]
    before = [await view(database, first.id), await view(database, second.id)]
    assert (
        await claim_calls.finish_jobs(database, [Finished(c, State.FAILED) for c in crossed])
        == set()
    )
    assert (
        await claim_calls.requeue_jobs(database, [Requeued(c, NOW, charged=True) for c in crossed])
        == set()
    )
    assert (
        await claim_calls.record_progress(database, [(c.id, c.number, "1") for c in crossed])
        == set()
    )
    assert [await view(database, first.id), await view(database, second.id)] == before


async def test_one_stale_claim_does_not_spoil_its_batch(database: Connection) -> None:
    first, second = await two_claims(database)
    batch = [replace(first, number=first.number + 1000), second]
    assert await claim_calls.record_progress(database, [(c.id, c.number, "1") for c in batch]) == {
        second.id
    }
    assert await claim_calls.finish_jobs(
        database, [Finished(c, State.COMPLETED) for c in batch]
    ) == {second.id}
    assert (await view(database, first.id)).state is State.RUNNING


async def test_a_queued_job_cannot_be_settled(database: Connection) -> None:
    taken = await running(database)
    await claim_calls.requeue_jobs(database, [Requeued(taken, NOW, charged=False)])
    assert await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED)]) == set()
    assert (await view(database, taken.id)).state is State.QUEUED


@pytest.mark.parametrize(("charged", "attempt"), [(True, 1), (False, 0)])
async def test_a_job_put_back_waits_and_is_charged_or_not(
    charged: bool, attempt: int, database: Connection
) -> None:
    """B2, D6"""
    taken = await running(database, key="k")
    assert await claim_calls.requeue_jobs(
        database, [Requeued(taken, timedelta(hours=1), charged)]
    ) == {taken.id}
    back = await view(database, taken.id)
    assert (back.state, back.attempt, back.key) == (State.QUEUED, attempt, "k")
    assert (back.claim, back.worker_id, back.started_at) == (None, None, None)
    assert await claim(database) == []
    delay = await claim_calls.next_due(database, "default")
    assert delay is not None
    assert timedelta(minutes=59) < delay <= timedelta(hours=1)


async def test_only_what_its_handler_asked_for_counts_as_a_snooze(database: Connection) -> None:
    """Neither what a worker that stops puts back nor another attempt after a failure."""
    snoozed, released, retried = [await enqueue(database) for _ in range(3)]
    for _ in range(2):
        one, two, three = await claim(database)
        batch = [
            Requeued(one, NOW, charged=False, why="snooze"),
            Requeued(two, NOW, charged=False, why="release"),
            Requeued(three, NOW, charged=True, why="retry"),
        ]
        assert await claim_calls.requeue_jobs(database, batch) == {snoozed, released, retried}
    assert [(c.attempt, c.snoozes) for c in await claim(database)] == [(1, 2), (1, 0), (3, 0)]


async def test_a_job_that_was_snoozed_and_then_cancelled_says_how_often(
    database: Connection,
) -> None:
    """Without the count it would look as if it had never run."""
    job = await enqueue(database)
    for _ in range(9):
        [taken] = await claim(database)
        await claim_calls.requeue_jobs(
            database, [Requeued(taken, NOW, charged=False, why="snooze")]
        )
    assert await client_calls.cancel_job(database, job, None) == "cancelled"
    ended = await view(database, job)
    assert (ended.state, ended.attempt, ended.snoozes) == (State.CANCELLED, 0, 9)
    [standing] = await stream_calls.job_snapshots(database, [job])
    assert (standing.attempt, standing.snoozes) == (0, 9)


@pytest.mark.parametrize("again", ["retry", "replace"])
async def test_a_job_that_begins_anew_has_no_snoozes(again: str, database: Connection) -> None:
    taken = await running(database, key="k")
    await claim_calls.requeue_jobs(database, [Requeued(taken, NOW, charged=False, why="snooze")])
    if again == "retry":
        await client_calls.cancel_job(database, taken.id, None)
        await client_calls.retry_job(database, taken.id)
    else:
        await client_calls.enqueue_job(database, NewJob("work", key="k"), "replace")
    [taken] = await claim(database)
    assert (taken.attempt, taken.snoozes) == (1, 0)


async def test_a_job_put_back_keeps_its_memory_unless_it_brings_a_new_one(
    database: Connection,
) -> None:
    """B3, B16"""
    await enqueue(database, data='{"polls": 1}')
    [taken] = await claim(database)
    await claim_calls.requeue_jobs(database, [Requeued(taken, NOW, charged=False)])
    [taken] = await claim(database)
    assert taken.data == '{"polls": 1}'
    await claim_calls.requeue_jobs(
        database, [Requeued(taken, NOW, charged=False, data='{"polls": 2}')]
    )
    [taken] = await claim(database)
    assert taken.data == '{"polls": 2}'


async def test_the_last_twenty_errors_are_kept(database: Connection) -> None:
    """D8"""
    await enqueue(database, max_attempts=100)
    for number in range(25):
        [taken] = await claim(database)
        await claim_calls.requeue_jobs(
            database, [Requeued(taken, NOW, charged=True, error=f'{{"message": "{number}"}}')]
        )
    [taken] = await claim(database)
    assert taken.attempt == 26
    assert [error["message"] for error in (await view(database, taken.id)).errors] == [
        str(n) for n in range(5, 25)
    ]


async def test_a_job_that_shall_be_cancelled_is_not_put_back(database: Connection) -> None:
    """B6"""
    taken = await running(database)
    await client_calls.cancel_job(database, taken.id, None)
    assert await claim_calls.requeue_jobs(database, [Requeued(taken, NOW, charged=False)]) == set()
    assert await claim_calls.finish_jobs(database, [Finished(taken, State.CANCELLED)]) == {taken.id}


async def test_progress_is_seen_by_whoever_waits(database: Connection) -> None:
    taken = await running(database)
    assert await claim_calls.record_progress(
        database, [(taken.id, taken.number, '{"done": 0.5}')]
    ) == {taken.id}
    [status] = await client_calls.watch_jobs(database, [taken.id])
    assert status.progress == {"done": 0.5}


async def test_a_heartbeat_learns_which_of_its_jobs_shall_stop(database: Connection) -> None:
    """B6, D4"""
    first, second = await two_claims(database)
    numbered = await living(database, queues='{"default": 10}')
    registered = await database.fetchval("SELECT heartbeat_at FROM hybrid_runner.workers")
    await client_calls.cancel_job(database, first.id, None)
    both = [(one.id, one.number) for one in (first, second)]
    news = await told(database, "worker-1", numbered, both)
    assert [one for one in news if isinstance(one, CancelRequested)] == [CancelRequested(first.id)]
    assert await beat(database, "worker-2", numbered, both) is None
    assert await database.fetchval("SELECT heartbeat_at FROM hybrid_runner.workers") > registered


async def test_a_worker_registers_again_under_its_name_and_leaves(database: Connection) -> None:
    """A6"""
    for host in ("first", "second"):
        registered = await worker_calls.register_worker(
            database, "worker-1", host, 1, "0.1.0", "{}", timedelta(seconds=30)
        )
        assert registered.took_over is (host == "second")
    numbered = registered.first_claim
    assert [row[0] for row in await database.fetch("SELECT host FROM hybrid_runner.workers")] == [
        "second"
    ]
    await worker_calls.retire_worker(database, "worker-1", numbered, in_order=True)
    assert await database.fetch("SELECT id FROM hybrid_runner.workers") == []


async def test_work_and_its_completion_commit_together(database: Connection) -> None:
    taken = await running(database)
    transaction = database.transaction()
    await transaction.start()
    assert await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED)]) == {taken.id}
    await transaction.rollback()
    assert (await view(database, taken.id)).state is State.RUNNING
