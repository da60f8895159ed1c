"""Jobs that wait for another job's key: `follow` and `collect` behind whoever runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import KeyLimits, NewJob, OnConflict, State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, client_calls, key_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, living, running
from tests.support.waiting import until_blocked

Another = Callable[[], Awaitable[Connection]]


async def call(
    on: Connection, payload: object, how: OnConflict = "follow", items: int | None = None
) -> tuple[int, str]:
    """Enqueue under the key `k`; the id and the outcome."""
    job = NewJob("work", json.dumps(payload), key="k")
    return await client_calls.enqueue_job(on, job, how, KeyLimits(max_items=items))


async def finish(on: Connection, taken: Claim) -> None:
    """End a claimed job."""
    done = await claim_calls.finish_jobs(on, [Finished(taken, State.COMPLETED, result="null")])
    assert done == {taken.id}


async def line(on: Connection) -> list[tuple[str, str, bool, Any]]:
    """Key, state, whether it sleeps, and payload of all live jobs, by key."""
    rows = await on.fetch(
        "SELECT key, state::text, run_at = 'infinity', payload FROM hybrid_runner.jobs"
        " ORDER BY octet_length(key)"
    )
    return [(row[0], row[1], row[2], json.loads(row[3])) for row in rows]


async def asleep(on: Connection, payload: object, how: OnConflict = "follow") -> int:
    """Store one behind the holder that runs, and let a worker find that it may not begin."""
    number, outcome = await call(on, payload, how)
    assert outcome == "follows"
    [taken] = await claim(on)
    assert await claim_calls.begin_successor(on, taken) is None
    return number


async def test_one_behind_a_running_holder_begins_when_that_has_ended(
    database: Connection,
) -> None:
    holder = await running(database, "k")
    waiting = await asleep(database, 1)
    assert await line(database) == [("k", "running", False, {}), (">k", "queued", True, 1)]
    assert await claim(database) == []
    await finish(database, holder)
    [taken] = await claim(database)
    assert (taken.id, taken.key, taken.attempt) == (waiting, "k", 1)


async def test_one_that_nobody_looked_at_yet_begins_all_the_same(database: Connection) -> None:
    holder = await running(database, "k")
    await call(database, 1)
    await finish(database, holder)
    assert await line(database) == [("k", "queued", False, 1)]


async def test_it_goes_on_waiting_while_its_holder_waits_for_a_retry(database: Connection) -> None:
    holder = await running(database, "k")
    await asleep(database, 1)
    back = Requeued(holder, timedelta(0), charged=True)
    assert await claim_calls.requeue_jobs(database, [back], None) == {holder.id}
    assert [each[0] for each in await line(database)] == ["k", ">k"]
    assert await call(database, 2) == ((await _id(database, ">k")), "replaced")
    taken = {each.key: each for each in await claim(database)}
    assert await claim_calls.begin_successor(database, taken[">k"]) is None
    await finish(database, taken["k"])
    assert await line(database) == [("k", "queued", False, 2)]


@pytest.mark.parametrize("how", ["cancel", "fail", "delete"])
async def test_however_its_holder_ends_it_begins(database: Connection, how: str) -> None:
    holder = await running(database, "k")
    waiting = await asleep(database, 1)
    match how:
        case "cancel":
            await database.execute("UPDATE hybrid_runner.workers SET dead_at = now()")
            assert await client_calls.cancel_job(database, holder.id, None) == "cancelled"
        case "fail":
            await claim_calls.finish_jobs(database, [Finished(holder, State.FAILED)])
        case "delete":
            await database.execute(f"DELETE FROM hybrid_runner.jobs WHERE id = {holder.id}")
            await database.execute("SELECT hybrid_runner.open_queue('default')")
            assert await key_calls.give_free_keys(database) == 1
    [taken] = await claim(database)
    assert (taken.id, taken.key) == (waiting, "k")


async def test_a_holder_that_ends_before_the_caller_commits_does_not_leave_it_behind(
    database: Connection, another: Another
) -> None:
    """The hard race: who ends it cannot see the one that waits, who enqueues cannot see the end."""
    holder = await running(database, "k")
    caller = await another()
    async with caller.transaction():
        assert (await call(caller, 1))[1] == "follows"
        await finish(database, holder)
        assert await line(database) == []
    [taken] = await claim(database)
    assert await claim_calls.begin_successor(database, taken) == "k"
    assert await line(database) == [("k", "running", False, 1)]


async def test_a_caller_of_an_old_snapshot_does_not_leave_it_behind(
    database: Connection, another: Another
) -> None:
    holder = await running(database, "k")
    caller = await another()
    async with caller.transaction(isolation="repeatable_read"):
        await caller.fetch("SELECT count(*) FROM hybrid_runner.jobs")
        await finish(database, holder)
        await call(caller, 1)
    [taken] = await claim(database)
    begun = taken.key == "k" or await claim_calls.begin_successor(database, taken) == "k"
    assert begun
    assert await line(database) == [("k", "running", False, 1)]


async def test_a_caller_who_changes_it_while_its_holder_ends_wakes_it(
    database: Connection, another: Another
) -> None:
    """The end of the holder waits for a moment only, and passes by what somebody holds."""
    holder = await running(database, "k")
    await asleep(database, 1)
    caller = await another()
    async with caller.transaction():
        assert (await call(caller, 2))[1] == "replaced"
        await finish(database, holder)
    [taken] = await claim(database)
    assert (taken.key, taken.payload) == (">k", "2")
    assert await claim_calls.begin_successor(database, taken) == "k"


async def test_a_caller_who_rolls_back_meanwhile_is_mended_by_the_duty(
    database: Connection, another: Another
) -> None:
    await database.execute("SELECT hybrid_runner.open_queue('default')")
    holder = await running(database, "k")
    await asleep(database, 1)
    caller = await another()
    await caller.execute("BEGIN")
    await call(caller, 2)
    await finish(database, holder)
    await caller.execute("ROLLBACK")
    assert await line(database) == [(">k", "queued", True, 1)]
    assert await key_calls.give_free_keys(database) == 1
    assert await line(database) == [("k", "queued", False, 1)]
    assert await key_calls.give_free_keys(database) == 0


async def test_a_caller_never_holds_up_the_end_of_a_running_job(
    database: Connection, another: Another
) -> None:
    holder = await running(database, "k")
    caller = await another()
    async with caller.transaction():
        await call(caller, 1)
        await call(caller, 2)
        await call(caller, [3], "collect")
        await asyncio.wait_for(finish(database, holder), 60)


async def test_whoever_asks_whether_it_may_begin_waits_for_the_end_under_way(
    database: Connection, another: Another
) -> None:
    holder = await running(database, "k")
    await call(database, 1)
    [taken] = await claim(database)
    ender = await another()
    await ender.execute("BEGIN")
    await finish(ender, holder)
    # What has been claimed is left to its worker, which cannot be told yet.
    assert await claim_calls.begin_successor(database, taken) is None
    await ender.execute("COMMIT")
    [(key, state, sleeps, _)] = await line(database)
    assert (key, state, sleeps) == (">k", "queued", False)  # it is looked at again soon
    await database.execute("UPDATE hybrid_runner.jobs SET run_at = now()")
    [again] = await claim(database)
    assert await claim_calls.begin_successor(database, again) == "k"


async def test_a_claim_of_one_that_was_changed_meanwhile_is_void(database: Connection) -> None:
    holder = await running(database, "k")
    await call(database, 1)
    [stale] = await claim(database)
    assert (await call(database, 2))[1] == "replaced"
    await finish(database, holder)
    assert await claim_calls.begin_successor(database, stale) is None
    [taken] = await claim(database)
    assert (taken.key, taken.payload) == ("k", "2")


async def test_one_that_waits_can_be_cancelled_whatever_its_state_says(
    database: Connection,
) -> None:
    await running(database, "k")
    number, _ = await call(database, 1)
    [taken] = await claim(database)
    assert await client_calls.cancel_job(database, number, None) == "cancelled"
    assert await claim_calls.begin_successor(database, taken) is None
    assert [each[0] for each in await line(database)] == ["k"]


async def test_amending_one_that_waits_has_it_looked_at_again(database: Connection) -> None:
    await running(database, "k")
    number = await asleep(database, 1)
    version = await database.fetch(f"SELECT version FROM hybrid_runner.jobs WHERE id = {number}")
    said = await client_calls.amend_job(database, number, version[0][0], "7", None, None, None)
    assert said == "amended"
    assert (await line(database))[1] == (">k", "queued", False, 7)


async def test_collected_items_keep_their_order_in_a_chain_of_jobs(database: Connection) -> None:
    holder = await running(database, "k")
    said = [(await call(database, [n], "collect", 2))[1] for n in range(5)]
    assert said == ["follows", "collected", "follows", "collected", "follows"]
    runs = []
    for _ in range(3):
        await finish(database, holder)
        [holder] = await _begun(database)
        runs.append(json.loads(holder.payload or ""))
    assert runs == [[0, 1], [2, 3], [4]]


async def test_when_one_in_the_middle_of_a_chain_is_cancelled_the_others_move_up(
    database: Connection,
) -> None:
    await running(database, "k")
    ids = [(await call(database, [n], "collect", 1))[0] for n in range(3)]
    await client_calls.cancel_job(database, ids[1], None)
    assert [(each[0], each[3]) for each in await line(database)] == [
        ("k", {}),
        (">k", [0]),
        (">>k", [2]),
    ]


async def test_items_go_behind_a_gap_and_not_into_it(
    database: Connection, another: Another
) -> None:
    """While somebody holds what is next in line, what comes later does not overtake it."""
    holder = await running(database, "k")
    await call(database, [0], "collect", 2)
    caller = await another()
    await caller.execute("BEGIN")
    await call(caller, [1], "collect", 2)
    await finish(database, holder)
    assert await line(database) == [(">k", "queued", False, [0])]
    later = await another()
    blocked = asyncio.create_task(call(later, [2], "collect", 3))
    await until_blocked(database, later)
    await caller.execute("COMMIT")
    assert (await blocked)[1] == "collected"
    [taken] = await _begun(database)
    assert json.loads(taken.payload or "") == [0, 1, 2]


async def test_a_list_that_would_be_too_large_goes_into_another_job(database: Connection) -> None:
    half = "x" * 600_000
    assert (await call(database, half, "collect"))[1] == "inserted"
    assert (await call(database, half, "collect"))[1] == "follows"
    assert [each[3] for each in await line(database)] == [[half], [half]]


async def test_others_jobs_are_not_changed(database: Connection, another: Another) -> None:
    await running(database, "k")
    await call(database, 1)
    await database.execute("UPDATE hybrid_runner.jobs SET enqueued_by = 'other' WHERE key = '>k'")
    name = "producer_of_keys"
    await database.execute(
        f"DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN IN ROLE hybrid_runner_producer"
    )
    stranger = await another()
    try:
        await stranger.execute(f"SET SESSION AUTHORIZATION {name}")
        ways: list[OnConflict] = ["follow", "collect"]
        for how in ways:
            with pytest.raises(Exception, match="which other enqueued"):
                await client_calls.enqueue_job(stranger, NewJob("work", key="k"), how)
        await stranger.execute("RESET SESSION AUTHORIZATION")
    finally:
        await database.execute(f"DROP ROLE {name}")


async def test_two_callers_at_once_store_one_job(database: Connection, another: Another) -> None:
    await running(database, "k")
    others = [await another() for _ in range(4)]
    said = await asyncio.gather(*(call(on, n) for n, on in enumerate(others)))
    assert sorted(each[1] for each in said) == ["follows", "replaced", "replaced", "replaced"]


async def test_a_debounced_job_is_due_in_the_end(database: Connection) -> None:
    async def debounced() -> Any:
        job = NewJob("work", key="k", delay=timedelta(hours=2))
        await client_calls.enqueue_job(
            database, job, "follow", KeyLimits(max_wait=timedelta(hours=3))
        )
        return (
            await database.fetch(
                "SELECT extract(epoch FROM run_at - created_at)::float8,"
                " extract(epoch FROM run_at - now())::float8 FROM hybrid_runner.jobs"
            )
        )[0]

    since, _ = await debounced()
    assert 7199 < since <= 7201
    await database.execute("UPDATE hybrid_runner.jobs SET created_at = now() - interval '2 hours'")
    since, _ = await debounced()
    assert 10799 < since <= 10801
    await database.execute("UPDATE hybrid_runner.jobs SET created_at = now() - interval '9 hours'")
    _, left = await debounced()
    assert left < 1


async def test_a_key_stays_taken_after_its_job_has_ended(database: Connection) -> None:
    async def unique(how: OnConflict = "exists") -> tuple[int, str]:
        return await client_calls.enqueue_job(
            database, NewJob("work", key="k"), how, KeyLimits(unique_for=timedelta(hours=1))
        )

    await living(database, lease=timedelta(hours=1))
    first = await unique()
    [taken] = await claim(database)
    await finish(database, taken)
    assert await unique() == (first[0], "exists")
    with pytest.raises(Exception, match="key 'k' was taken by job"):
        await unique("error")
    assert await key_calls.forget_taken_keys(database, 10) == 0
    await database.execute("UPDATE hybrid_runner.taken_keys SET until = now()")
    assert (await unique())[1] == "inserted"
    await database.execute("UPDATE hybrid_runner.taken_keys SET until = now()")
    assert await key_calls.forget_taken_keys(database, 10) == 1


async def test_a_key_that_a_live_job_has_is_not_taken_for_longer(database: Connection) -> None:
    holder = await running(database, "k")
    said = await client_calls.enqueue_job(
        database, NewJob("work", key="k"), "exists", KeyLimits(unique_for=timedelta(hours=1))
    )
    assert said == (holder.id, "exists")
    assert await database.fetch("SELECT FROM hybrid_runner.taken_keys") == []


async def test_jobs_that_nobody_began_in_time_are_cancelled(database: Connection) -> None:
    begun = await running(database)
    number = (await client_calls.enqueue_job(database, NewJob("work"), "exists")).id
    await database.execute("UPDATE hybrid_runner.jobs SET start_by = now() - interval '1 hour'")
    start = key_calls.START
    assert await key_calls.end_unbegun(database, timedelta(hours=2), start, 9) == (None, [])
    assert await key_calls.end_unbegun(database, timedelta(0), start, 9) == (None, [number])
    view = await client_calls.get_job(database, number)
    assert view is not None
    assert (view.state, view.errors[-1]["type"]) == (State.CANCELLED, "Expired")
    await finish(database, begun)


async def _id(on: Connection, key: str) -> int:
    rows = await on.fetch("SELECT id FROM hybrid_runner.jobs WHERE key = $1", key)
    number: int = rows[0][0]
    return number


async def _begun(on: Connection) -> list[Claim]:
    """What a worker claims and may begin."""
    begun = list[Claim]()
    for taken in await claim(on):
        key = taken.key
        if key is not None and key.startswith(">"):
            key = await claim_calls.begin_successor(on, taken)
        if key:
            begun.append(taken)
    return begun
