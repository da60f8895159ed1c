from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Requeued
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, enqueue

Another = Callable[[], Awaitable[Connection]]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def test_many_claimers_get_each_job_once(database: Connection, another: Another) -> None:
    """A4"""
    ids = {
        e.id
        for e in await client_calls.enqueue_many(
            database, [NewJob("work", priority=n % 3) for n in range(2_000)], "exists"
        )
    }

    async def drain(connection: Connection, worker_id: str) -> list[int]:
        taken: list[int] = []
        while batch := await claim(connection, slots=7, worker_id=worker_id):
            taken += [c.id for c in batch]
        return taken

    connections = [await another() for _ in range(12)]
    taken = [
        job
        for jobs in await asyncio.gather(
            *(drain(c, f"worker-{n}") for n, c in enumerate(connections))
        )
        for job in jobs
    ]
    assert len(taken) == len(set(taken))
    assert set(taken) == ids
    owners = await database.fetch(
        "SELECT DISTINCT worker_id FROM hybrid_runner.jobs WHERE state = 'running'"
    )
    assert len(owners) > 1


async def test_losing_a_race_is_no_error_and_no_waiting(
    database: Connection, another: Another
) -> None:
    """A4, D2"""
    await enqueue(database)
    first = await another()
    async with first.transaction():
        assert len(await claim(first)) == 1
        assert await claim(database) == []


async def test_a_claim_takes_no_more_than_it_asked_for_and_locks_no_more(
    database: Connection, another: Another
) -> None:
    """A4, A13"""
    await client_calls.enqueue_many(
        database, [NewJob("work", priority=n % 4) for n in range(20)], "exists"
    )
    first = await another()
    async with first.transaction():
        assert len(await claim(first, slots=3)) == 3
        assert len(await claim(database, slots=100)) == 17
    assert await claim(database, slots=0) == []


async def test_urgent_lanes_come_first_and_the_oldest_first_within_a_lane(
    database: Connection,
) -> None:
    """A7"""
    now = datetime.now(UTC)
    plan = [(5, 30), (0, 10), (9, 90), (5, 10), (0, 40), (5, 20), (9, 80)]
    for priority, age in plan:
        await enqueue(
            database,
            priority=priority,
            run_at=now - timedelta(seconds=age),
            data=f"[{priority}, {age}]",
        )
    taken = [c.data for c in await claim(database)]
    assert taken == ["[0, 40]", "[0, 10]", "[5, 30]", "[5, 20]", "[5, 10]", "[9, 90]", "[9, 80]"]


async def test_batches_keep_the_order_that_one_claim_would_have(database: Connection) -> None:
    """A7"""
    await client_calls.enqueue_many(
        database, [NewJob("work", priority=n % 3, run_at=LONG_AGO) for n in range(30)], "exists"
    )
    expected = await database.fetch(
        "SELECT id FROM hybrid_runner.jobs ORDER BY priority, run_at, id"
    )
    taken: list[int] = []
    while batch := await claim(database, slots=4):
        taken += [c.id for c in batch]
    assert taken == [row[0] for row in expected]


async def test_a_claim_records_who_when_and_which_attempt(database: Connection) -> None:
    """A6, D3"""
    job = await enqueue(database, payload='{"a": 1}')
    [taken] = await claim(database, worker_id="worker-7")
    view = await client_calls.get_job(database, job)
    assert view is not None
    assert (view.state, view.worker_id, view.attempt, view.version) == (
        State.RUNNING,
        "worker-7",
        1,
        2,
    )
    assert (view.claim, view.started_at) == (taken.number, taken.started_at)
    assert (taken.id, taken.kind, taken.queue, taken.payload, taken.attempt) == (
        job,
        "work",
        "default",
        '{"a": 1}',
        1,
    )
    assert taken.pickup >= timedelta(0)


async def test_a_claim_writes_down_what_the_handler_declares_unless_the_job_says_otherwise(
    database: Connection,
) -> None:
    """D5: others can then apply it without knowing the kind."""
    plain = await enqueue(database, kind="other")
    special = await enqueue(database, kind="other", max_attempts=9, timeout=timedelta(seconds=8))
    kinds = claim_calls.Kinds(
        [
            claim_calls.KindLimits("work", 5, None),
            claim_calls.KindLimits("other", 3, timedelta(seconds=30), are_ceilings=False),
        ]
    )
    taken = {
        c.id: (c.max_attempts, c.timeout_seconds)
        for c in (
            await claim_calls.claim_jobs(database, "default", kinds, 10, "worker-1", 1)
        ).claims
    }
    assert taken == {plain: (3, 30.0), special: (9, 8.0)}
    view = await client_calls.get_job(database, plain)
    assert view is not None
    assert (view.max_attempts, view.timeout) == (3, timedelta(seconds=30))


async def test_a_job_is_cut_down_to_its_handler_s_ceilings(database: Connection) -> None:
    """Else whoever may insert could hold a slot for ten years."""
    modest = await enqueue(database, kind="other", max_attempts=2, timeout=timedelta(seconds=8))
    greedy = await enqueue(database, kind="other", max_attempts=1000, timeout=timedelta(days=3000))
    endless = await enqueue(database, kind="work", timeout=timedelta(days=3000))
    kinds = claim_calls.Kinds(
        [
            claim_calls.KindLimits("work", 5, None),
            claim_calls.KindLimits("other", 3, timedelta(seconds=30)),
        ]
    )
    result = await claim_calls.claim_jobs(database, "default", kinds, 10, "worker-1", 1)
    assert {c.id: (c.max_attempts, c.timeout_seconds) for c in result.claims} == {
        modest: (2, 8.0),
        greedy: (3, 30.0),
        endless: (5, timedelta(days=3000).total_seconds()),
    }


async def test_kinds_that_nobody_here_knows_are_left_to_others(database: Connection) -> None:
    """B17"""
    unknown = await enqueue(database, kind="from.the.future", priority=0)
    known = await enqueue(database)
    assert [c.id for c in await claim(database, slots=1)] == [known]
    view = await client_calls.get_job(database, unknown)
    assert view is not None
    assert (view.state, view.attempt, view.version) == (State.QUEUED, 0, 1)


async def test_a_worker_that_knows_nothing_takes_nothing(database: Connection) -> None:
    await enqueue(database)
    assert (
        await claim_calls.claim_jobs(database, "default", claim_calls.Kinds([]), 10, "worker-1", 1)
    ).claims == []


async def test_other_queues_and_later_jobs_are_left_alone(database: Connection) -> None:
    await enqueue(database, queue="images")
    await enqueue(database, delay=timedelta(hours=1))
    assert await claim(database) == []


async def test_a_claim_number_never_comes_back(database: Connection) -> None:
    """A4: attempts repeat, claims do not."""
    await enqueue(database)
    [first] = await claim(database)
    await claim_calls.requeue_jobs(database, [Requeued(first, timedelta(0), charged=False)])
    [second] = await claim(database)
    assert (first.attempt, second.attempt) == (1, 1)
    assert second.number != first.number


async def test_the_next_due_time_is_that_of_the_earliest_job_that_waits(
    database: Connection,
) -> None:
    """A1"""
    assert await claim_calls.next_due(database, "default") is None
    await enqueue(database)
    assert (
        await claim_calls.next_due(database, "default") is None
    )  # due already: a claim's business
    await enqueue(database, delay=timedelta(hours=2))
    await enqueue(database, delay=timedelta(hours=1), priority=9)
    await enqueue(database, delay=timedelta(minutes=1), queue="images")
    delay = await claim_calls.next_due(database, "default")
    assert delay is not None
    assert timedelta(minutes=59) < delay <= timedelta(hours=1)
