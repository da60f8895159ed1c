from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.errors import EnqueueError
from hybrid_runner.model.jobs import MAX_ATTEMPTS, JobView, State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, ended, enqueue, living, running
from tests.support.waiting import until_blocked

Another = Callable[[], Awaitable[Connection]]
FINAL = ["completed", "failed", "cancelled"]
UNKNOWN = 999_999


async def bring(connection: Connection, state: str) -> int:
    """The id of a job in that state, or of none."""
    match state:
        case "unknown":
            return UNKNOWN
        case "queued":
            return await enqueue(connection, key="k")
        case "running":
            return (await running(connection, key="k")).id
        case "completed":
            return await ended(connection, State.COMPLETED, key="k")
        case "failed":
            return await ended(connection, State.FAILED, key="k")
        case _:
            return await ended(connection, State.CANCELLED, key="k")


async def view(connection: Connection, job: int) -> JobView:
    """The job, which is there."""
    found = await client_calls.get_job(connection, job)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("state", "said", "after"),
    [
        ("queued", "cancelled", "cancelled"),
        ("running", "requested", "running"),
        *((state, "finished", state) for state in FINAL),
        ("unknown", "unknown", None),
    ],
)
async def test_cancel_says_what_it_did(
    state: str, said: str, after: str | None, database: Connection
) -> None:
    """B6"""
    job = await bring(database, state)
    assert await client_calls.cancel_job(database, job, "no longer needed") == said
    if after:
        assert (await view(database, job)).state == after


async def test_a_cancelled_job_keeps_the_reason_and_frees_its_key(database: Connection) -> None:
    """B6, D7"""
    job = await bring(database, "queued")
    await client_calls.cancel_job(database, job, "no longer needed")
    cancelled = await view(database, job)
    assert (cancelled.errors[-1]["message"], cancelled.errors[-1]["type"]) == (
        "no longer needed",
        "Cancel",
    )
    assert cancelled.finished_at is not None
    assert await enqueue(database, key="k") != job


async def test_a_job_that_was_never_claimed_is_reported_with_the_usual_number_of_attempts(
    database: Connection,
) -> None:
    """Its handler was never asked how often it may be tried."""
    for own in (None, 2):
        await client_calls.cancel_job(database, await enqueue(database, max_attempts=own), None)
    ends = (await worker_calls.take_unreported_ends(database, 10)).ends
    assert [end.claim.max_attempts for end in ends] == [MAX_ATTEMPTS, 2]


async def test_asking_a_running_job_twice_keeps_the_first_time(database: Connection) -> None:
    """B6"""
    job = await bring(database, "running")
    await client_calls.cancel_job(database, job, None)
    first = (await view(database, job)).cancel_requested_at
    assert await client_calls.cancel_job(database, job, None) == "requested"
    assert (await view(database, job)).cancel_requested_at == first is not None


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("queued", "queued"),
        ("running", "running"),
        *((state, "queued") for state in FINAL),
        ("unknown", "unknown"),
    ],
)
async def test_retry_says_what_it_did(state: str, said: str, database: Connection) -> None:
    job = await bring(database, state)
    assert await client_calls.retry_job(database, job) == said
    if said == "queued":
        [taken] = await claim(database)
        assert (taken.id, taken.attempt) == (job, 1)


async def test_retry_makes_a_waiting_job_due_now(database: Connection) -> None:
    job = await enqueue(database, delay=timedelta(hours=1))
    assert await claim(database) == []
    await client_calls.retry_job(database, job)
    assert [taken.id for taken in await claim(database)] == [job]


async def test_a_retried_job_is_the_same_job_with_fresh_attempts_and_its_errors(
    database: Connection,
) -> None:
    """D8"""
    taken = await running(database, key="k")
    await claim_calls.finish_jobs(
        database, [Finished(taken, State.FAILED, error='{"message": "first"}')]
    )
    assert await client_calls.retry_job(database, taken.id) == "queued"
    again = await view(database, taken.id)
    assert (again.state, again.attempt, again.key, again.finished_at) == (
        State.QUEUED,
        0,
        "k",
        None,
    )
    assert [error["message"] for error in again.errors] == ["first"]
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.all_jobs WHERE id = $1", taken.id
        )
        == 1
    )


async def test_a_job_whose_key_was_taken_meanwhile_stays_finished(database: Connection) -> None:
    job = await ended(database, key="k")
    await enqueue(database, key="k")
    assert await client_calls.retry_job(database, job) == "key_taken"
    assert (await view(database, job)).state is State.COMPLETED


async def test_two_who_retry_one_job_make_one_job(database: Connection, another: Another) -> None:
    job = await ended(database)
    first, second = await another(), await another()
    transaction = first.transaction()
    await transaction.start()
    assert await client_calls.retry_job(first, job) == "queued"
    waiting = asyncio.create_task(client_calls.retry_job(second, job))
    await until_blocked(database, second)
    await transaction.commit()
    assert await waiting == "queued"
    assert (
        await database.fetchval("SELECT count(*) FROM hybrid_runner.all_jobs WHERE id = $1", job)
        == 1
    )


async def test_whoever_cancels_a_job_that_ends_meanwhile_learns_that_it_finished(
    database: Connection, another: Another
) -> None:
    taken = await running(database)
    worker, person = await another(), await another()
    transaction = worker.transaction()
    await transaction.start()
    await claim_calls.finish_jobs(worker, [Finished(taken, State.COMPLETED)])
    waiting = asyncio.create_task(client_calls.cancel_job(person, taken.id, None))
    await until_blocked(database, person)
    await transaction.commit()
    assert await waiting == "finished"


async def test_whoever_cancels_a_job_that_is_claimed_meanwhile_asks_it_to_stop(
    database: Connection, another: Another
) -> None:
    """B6"""
    await living(database)
    job = await enqueue(database)
    worker, person = await another(), await another()
    transaction = worker.transaction()
    await transaction.start()
    assert len(await claim(worker)) == 1
    waiting = asyncio.create_task(client_calls.cancel_job(person, job, None))
    await until_blocked(database, person)
    await transaction.commit()
    assert await waiting == "requested"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("queued", "amended"),
        ("running", "running"),
        *((state, "finished") for state in FINAL),
        ("unknown", "unknown"),
    ],
)
async def test_amend_says_what_it_did(state: str, said: str, database: Connection) -> None:
    """A5"""
    job = await bring(database, state)
    version = 1 if state in ("queued", "unknown") else (await view(database, job)).version
    assert await client_calls.amend_job(database, job, version, '{"a": 2}', 1, None, None) == said
    if state != "unknown":
        assert ((await view(database, job)).payload == {"a": 2}) is (said == "amended")


async def test_an_amendment_changes_only_what_it_names(database: Connection) -> None:
    """A5"""
    job = await enqueue(database, payload='{"a": 1}', priority=3, data='{"seen": 1}')
    due = datetime(2031, 1, 2, tzinfo=UTC)
    assert await client_calls.amend_job(database, job, 1, None, None, due, None) == "amended"
    amended = await view(database, job)
    assert (amended.payload, amended.priority, amended.data, amended.run_at) == (
        {"a": 1},
        3,
        {"seen": 1},
        due,
    )
    assert amended.version == 2


async def test_an_amendment_of_a_stale_version_changes_nothing_and_says_so(
    database: Connection,
) -> None:
    """A5"""
    job = await enqueue(database, priority=3)
    assert await client_calls.amend_job(database, job, 1, None, 4, None, None) == "amended"
    assert await client_calls.amend_job(database, job, 1, None, 9, None, None) == "stale"
    amended = await view(database, job)
    assert (amended.priority, amended.version) == (4, 2)


async def test_two_who_amend_one_version_at_once_have_one_winner(
    database: Connection, another: Another
) -> None:
    """A5"""
    job = await enqueue(database)
    connections = [await another() for _ in range(8)]
    answers = await asyncio.gather(
        *(client_calls.amend_job(c, job, 1, None, 3, None, None) for c in connections)
    )
    assert sorted(answers) == ["amended"] + ["stale"] * 7


async def test_every_step_of_a_job_is_a_new_version(database: Connection) -> None:
    """A5"""
    await living(database)
    job = await enqueue(database)
    versions = [(await view(database, job)).version]
    [taken] = await claim(database)
    versions.append((await view(database, job)).version)
    await client_calls.cancel_job(database, job, None)
    versions.append((await view(database, job)).version)
    await claim_calls.finish_jobs(database, [Finished(taken, State.CANCELLED)])
    versions.append((await view(database, job)).version)
    await client_calls.retry_job(database, job)
    versions.append((await view(database, job)).version)
    assert versions == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("priority", [99, -1, 2_000_000_000])
async def test_an_amendment_cannot_make_an_impossible_job(
    priority: int, database: Connection
) -> None:
    job = await enqueue(database)
    with pytest.raises(EnqueueError, match="priority is 0 to 9"):
        await client_calls.amend_job(database, job, 1, None, priority, None, None)


async def test_a_paused_queue_gives_no_jobs_until_it_is_resumed(database: Connection) -> None:
    await enqueue(database)
    assert await client_calls.pause_queue(database, "default") is True
    assert await client_calls.pause_queue(database, "default") is False
    assert await claim(database) == []
    assert await client_calls.resume_queue(database, "default") is True
    assert await client_calls.resume_queue(database, "default") is False
    assert len(await claim(database)) == 1


async def test_a_queue_can_be_paused_before_anyone_knows_it(database: Connection) -> None:
    assert await client_calls.resume_queue(database, "images") is False
    assert await client_calls.pause_queue(database, "images") is True
    await enqueue(database, queue="images")
    await enqueue(database, queue="mail")
    assert await claim(database, queue="images") == []
    assert len(await claim(database, queue="mail")) == 1


@pytest.mark.parametrize("queue", ["", "two words", "q" * 49])
async def test_an_absurd_queue_cannot_be_paused(queue: str, database: Connection) -> None:
    with pytest.raises(Exception, match=r"queue|name") as refusal:
        await client_calls.pause_queue(database, queue)
    assert "\n" not in str(refusal.value)


async def test_jobs_are_listed_newest_first_and_by_what_is_asked(database: Connection) -> None:
    done = await ended(database)
    waiting = await enqueue(database, queue="images")
    other = await enqueue(database, queue="images", kind="other")

    async def listed(
        state: State | None, queue: str | None, kind: str | None, most: int = 10
    ) -> list[int]:
        return [job.id for job in await client_calls.list_jobs(database, state, queue, kind, most)]

    assert await listed(None, None, None) == [other, waiting, done]
    assert await listed(None, None, None, most=1) == [other]
    assert await listed(State.COMPLETED, None, None) == [done]
    assert await listed(None, "images", "work") == [waiting]


async def test_waiters_see_states_and_results(database: Connection) -> None:
    done = await ended(database)
    waiting = await enqueue(database)
    seen = {
        status.id: (status.state, status.result)
        for status in await client_calls.watch_jobs(database, [done, waiting, UNKNOWN])
    }
    assert seen == {done: (State.COMPLETED, '"done"'), waiting: (State.QUEUED, None)}


@pytest.mark.parametrize(
    "gone",
    [
        "DELETE FROM hybrid_runner.workers",
        "UPDATE hybrid_runner.workers SET heartbeat_at = now() - lease",
    ],
)
async def test_a_job_whose_worker_is_dead_can_be_cancelled_and_run_again(
    database: Connection, gone: str
) -> None:
    """Nobody is there to be told; and should the worker live after all, its claim is void."""
    first = await running(database, key="first")
    second = await running(database)
    await database.execute(gone)
    assert await client_calls.cancel_job(database, first.id, "stranded") == "cancelled"
    assert await client_calls.retry_job(database, second.id) == "queued"
    assert (
        await claim_calls.finish_jobs(
            database, [Finished(first, State.COMPLETED), Finished(second, State.COMPLETED)]
        )
        == set()
    )
    view = await client_calls.get_job(database, first.id)
    assert view is not None
    assert (view.state, view.errors[-1]["message"]) == (State.CANCELLED, "stranded")
    [again] = await claim(database)
    assert again.id == second.id
