"""Clean-ups: the job of another kind that is stored however a job ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from hybrid_runner import Ended
from hybrid_runner.handlers.json_type import JsonType
from hybrid_runner.model.jobs import JobView, NewJob, State
from hybrid_runner.model.settlements import FinalState, Finished
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, enqueue, living, running

Another = Callable[[], Awaitable[Connection]]
MIB = 1024 * 1024
LARGE = json.dumps("x" * 600_000)


@pytest.fixture
async def prepared(database: Connection) -> Connection:
    """A database in which `work` has a clean-up, of a kind that a worker knows."""
    await database.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue, on_end)"
        " VALUES ('work', 'default', 'clean-up'), ('clean-up', 'cleaning', NULL)"
    )
    return database


async def clean_ups(connection: Connection) -> list[JobView]:
    """The live jobs of kind `clean-up`, by id."""
    ids = await connection.fetch(
        "SELECT id FROM hybrid_runner.jobs WHERE kind = 'clean-up' ORDER BY id"
    )
    found = [await client_calls.get_job(connection, row["id"]) for row in ids]
    return [job for job in found if job is not None]


def read(clean_up: JobView) -> Ended[Any, Any]:
    """What the clean-up's handler is given."""
    ended: Ended[Any, Any] = JsonType(TypeAdapter(Ended[Any, Any])).read(
        json.dumps(clean_up.payload)
    )
    return ended


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED])
async def test_however_a_worker_ends_a_job_its_clean_up_is_stored(
    state: FinalState, prepared: Connection
) -> None:
    """B11"""
    job = await enqueue(prepared, key="run-7", payload='{"run": 7}', data='{"task": "t"}')
    [taken] = await claim(prepared)
    error = None if state is State.COMPLETED else '{"message": "why"}'
    ending = Finished(taken, state, result='{"rows": 3}', error=error)
    assert await claim_calls.finish_jobs(prepared, [ending]) == {job}
    [clean_up] = await clean_ups(prepared)
    assert (clean_up.queue, clean_up.key, clean_up.state) == (
        "cleaning",
        f"ended:{job}",
        State.QUEUED,
    )
    assert read(clean_up) == Ended[Any, Any](
        id=job,
        kind="work",
        key="run-7",
        state=state,
        reason=None if error is None else "why",
        payload={"run": 7},
        data={"task": "t"},
        result={"rows": 3},
        errors=[] if error is None else [{"message": "why"}],
    )
    ended = await client_calls.get_job(prepared, job)
    assert ended is not None
    assert ended.followed_by == [clean_up.id]


async def test_a_completed_job_has_no_reason_though_it_had_errors(
    prepared: Connection,
) -> None:
    taken = await running(prepared)
    await prepared.execute("""UPDATE hybrid_runner.jobs SET errors = '[{"message": "first"}]'""")
    await claim_calls.finish_jobs(prepared, [Finished(taken, State.COMPLETED)])
    [clean_up] = await clean_ups(prepared)
    assert (read(clean_up).reason, read(clean_up).errors) == (None, [{"message": "first"}])


@pytest.mark.parametrize("how", ["before its first claim", "while it waits", "its worker is dead"])
async def test_cancelling_a_job_that_no_worker_has_stores_its_clean_up(
    how: str, prepared: Connection
) -> None:
    """B6, B11"""
    job = await enqueue(prepared)
    if how != "before its first claim":
        await claim(prepared)  # of a worker that nobody registered
    if how == "while it waits":
        await prepared.execute(
            "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, snoozes = 1"
        )
    assert await client_calls.cancel_job(prepared, job, "no longer wanted") == "cancelled"
    [clean_up] = await clean_ups(prepared)
    assert (read(clean_up).state, read(clean_up).reason) == (State.CANCELLED, "no longer wanted")


async def test_a_job_that_is_cancelled_while_it_runs_has_its_clean_up_at_its_end(
    prepared: Connection,
) -> None:
    """B6, B11"""
    taken = await running(prepared)
    assert await client_calls.cancel_job(prepared, taken.id, "enough") == "requested"
    assert await clean_ups(prepared) == []
    await claim_calls.finish_jobs(prepared, [Finished(taken, State.CANCELLED)])
    [clean_up] = await clean_ups(prepared)
    assert read(clean_up).reason == "enough"


async def test_why_it_was_cancelled_is_not_hidden_by_what_went_wrong_afterwards(
    prepared: Connection,
) -> None:
    """B6"""
    taken = await running(prepared)
    await client_calls.cancel_job(prepared, taken.id, "enough")
    lost = '{"type": "WorkerLost", "message": "worker w is gone"}'
    await claim_calls.finish_jobs(prepared, [Finished(taken, State.CANCELLED, error=lost)])
    [clean_up] = await clean_ups(prepared)
    assert (read(clean_up).reason, len(read(clean_up).errors)) == ("enough", 2)


async def test_a_job_that_is_refused_at_the_claim_has_its_clean_up(
    prepared: Connection,
) -> None:
    """B11"""
    await enqueue(prepared)
    [taken] = await claim(prepared)
    await prepared.execute("UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL")
    assert await claim_calls.refuse_job(prepared, taken, '{"message": "damaged"}', unreadable=True)
    [clean_up] = await clean_ups(prepared)
    assert (read(clean_up).state, read(clean_up).reason) == (State.FAILED, "damaged")


async def test_only_the_kinds_that_say_so_have_clean_ups(prepared: Connection) -> None:
    await living(prepared)
    await enqueue(prepared, kind="other")
    await enqueue(prepared)
    batch = [Finished(each, State.COMPLETED) for each in await claim(prepared)]
    assert len(await claim_calls.finish_jobs(prepared, batch)) == 2
    [clean_up] = await clean_ups(prepared)
    assert read(clean_up).kind == "work"


async def test_a_clean_up_that_no_worker_knows_is_queued_where_its_job_was(
    database: Connection,
) -> None:
    """B17"""
    await database.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue, on_end) VALUES ('work', 'x', 'clean-up')"
    )
    await living(database)
    await enqueue(database, queue="mine")
    [taken] = await claim(database, queue="mine")
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED)])
    [clean_up] = await clean_ups(database)
    assert clean_up.queue == "mine"


async def test_clean_ups_and_follow_ups_of_one_job_are_both_named_by_its_end(
    prepared: Connection,
) -> None:
    taken = await running(prepared)
    poll = NewJob("poll", key="poll-7")
    await claim_calls.finish_jobs(
        prepared, [Finished(taken, State.COMPLETED, follow_ups=(poll, poll))]
    )
    ended = await client_calls.get_job(prepared, taken.id)
    assert ended is not None
    stored = await prepared.fetch("SELECT id FROM hybrid_runner.jobs ORDER BY id")
    assert ended.followed_by == [row["id"] for row in stored]
    assert len(stored) == 2


async def test_a_stale_claim_stores_no_clean_up(prepared: Connection) -> None:
    """B16"""
    taken = await running(prepared)
    stale = replace(taken, number=taken.number + 1000)
    assert await claim_calls.finish_jobs(prepared, [Finished(stale, State.COMPLETED)]) == set()
    assert await clean_ups(prepared) == []


async def test_two_outcomes_of_one_job_store_one_clean_up(prepared: Connection) -> None:
    ending = Finished(await running(prepared), State.COMPLETED)
    await claim_calls.finish_jobs(prepared, [ending, ending])
    assert len(await clean_ups(prepared)) == 1


async def test_a_clean_up_goes_without_its_key_if_a_live_job_has_it(
    prepared: Connection,
) -> None:
    """Whoever may enqueue can guess it."""
    first, second = await running(prepared), await running(prepared)
    await enqueue(prepared, kind="other", key=f"ended:{first.id}")
    batch = [Finished(each, State.COMPLETED) for each in (first, second)]
    assert await claim_calls.finish_jobs(prepared, batch) == {first.id, second.id}
    assert {read(clean_up).id: clean_up.key for clean_up in await clean_ups(prepared)} == {
        first.id: None,
        second.id: f"ended:{second.id}",
    }


async def test_a_clean_up_does_not_wait_for_whoever_may_be_taking_its_key(
    prepared: Connection, another: Another
) -> None:
    """For as long as a transaction of a producer is open, which may be for ever."""
    taken = await running(prepared)
    holder = await another()
    transaction = holder.transaction()
    await transaction.start()
    await enqueue(holder, kind="other", key=f"ended:{taken.id}")
    assert await claim_calls.finish_jobs(prepared, [Finished(taken, State.COMPLETED)]) == {taken.id}
    [clean_up] = await clean_ups(prepared)
    assert clean_up.key is None
    await transaction.commit()
    ended = await client_calls.get_job(prepared, taken.id)
    assert ended is not None
    assert ended.followed_by == [clean_up.id]


async def test_a_job_that_ends_twice_has_two_clean_ups(prepared: Connection) -> None:
    """At least once: the first one may not have run yet when somebody retries the job."""
    taken = await running(prepared)
    await claim_calls.finish_jobs(prepared, [Finished(taken, State.COMPLETED)])
    assert await client_calls.retry_job(prepared, taken.id) == "queued"
    [again] = await claim(prepared)
    await claim_calls.finish_jobs(prepared, [Finished(again, State.FAILED)])
    assert [(read(clean_up).state, clean_up.key) for clean_up in await clean_ups(prepared)] == [
        (State.COMPLETED, f"ended:{taken.id}"),
        (State.FAILED, None),
    ]


@pytest.mark.parametrize(
    ("carried", "left_out"),
    [
        ({"result": LARGE}, []),
        ({"result": LARGE, "data": LARGE}, ["result"]),
        ({"result": LARGE, "data": LARGE, "payload": LARGE}, ["result", "data"]),
        (
            {"payload": LARGE, "errors": f"[{LARGE}]"},
            ["errors"],
        ),
        (
            {"payload": json.dumps("x" * (MIB - 2)), "data": LARGE, "result": LARGE},
            ["result", "data", "payload"],
        ),
        # in storage it takes some bytes
        ({"result": "[1e131071, 1e131071, 1e131071, 1e131071]", "data": LARGE}, ["result"]),
    ],
)
async def test_a_clean_up_is_given_what_fits(
    carried: dict[str, str], left_out: list[str], prepared: Connection
) -> None:
    """A payload has 1 MiB of text at most."""
    job = await enqueue(
        prepared, payload=carried.get("payload", "7"), data=carried.get("data"), key="k"
    )
    [taken] = await claim(prepared)
    if errors := carried.get("errors"):
        await prepared.execute("UPDATE hybrid_runner.jobs SET errors = $1::text::jsonb", errors)
    await claim_calls.finish_jobs(
        prepared, [Finished(taken, State.COMPLETED, result=carried.get("result"))]
    )
    [clean_up] = await clean_ups(prepared)
    ended = read(clean_up)
    assert (ended.id, ended.key, ended.left_out) == (job, "k", left_out)
    for part in ("result", "data"):
        there = part in carried and part not in left_out
        assert (getattr(ended, part) is not None) == there
    if "payload" in left_out:
        with pytest.raises(ValueError, match=f"the payload of job {job} .work.: was left out"):
            _ = ended.payload


async def test_a_clean_up_is_in_the_trace_of_its_job(prepared: Connection) -> None:
    """F4"""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    job = await enqueue(prepared, traceparent=trace)
    assert await client_calls.cancel_job(prepared, job, None) == "cancelled"
    [clean_up] = await clean_ups(prepared)
    assert clean_up.traceparent == trace


async def test_a_clean_up_is_in_the_trace_that_a_worker_began(prepared: Connection) -> None:
    """F4"""
    taken = [await running(prepared), await running(prepared)]
    begun = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    batch = [Finished(each, State.COMPLETED) for each in taken]
    await claim_calls.finish_jobs(prepared, batch, [None, begun])
    assert [clean_up.traceparent for clean_up in await clean_ups(prepared)] == [None, begun]


async def test_the_same_columns_are_archived_with_a_clean_up_and_without(
    prepared: Connection,
) -> None:
    columns = []
    for kind in ("work", "other"):
        await living(prepared)
        await enqueue(
            prepared,
            kind=kind,
            payload='{"a": 1}',
            data='{"b": 2}',
            timeout=timedelta(seconds=9),
            max_attempts=3,
            max_snoozes=4,
            max_duration=timedelta(hours=2),
            finish_within=timedelta(hours=3),
        )
        [taken] = await claim(prepared)
        await prepared.execute(
            "UPDATE hybrid_runner.jobs SET waits_for = 'w', history = '[1]', progress = '2',"
            " errors = '[3]', snoozes = 4, priority = 6 WHERE id = $1",
            taken.id,
        )
        await claim_calls.finish_jobs(
            prepared, [Finished(taken, State.FAILED, result="5", error='{"message": "6"}')]
        )
        columns.append(
            await prepared.fetchrow("SELECT * FROM hybrid_runner.archive WHERE id = $1", taken.id)
        )
    beside, without = (dict(row or {}) for row in columns)
    assert {name for name in beside if beside[name] != without[name]} == {
        "id",
        "kind",
        "run_at",
        "claim",
        "started_at",
        "began_at",
        "created_at",
        "finished_at",
        "followed_by",
    }


async def test_of_a_large_batch_each_clean_up_is_told_of_its_own_job(prepared: Connection) -> None:
    await living(prepared)
    for number in range(250):
        await enqueue(prepared, payload=str(number))
    taken = await claim(prepared, slots=250)
    batch = [
        Finished(
            each,
            State.FAILED if number % 3 else State.COMPLETED,
            result=str(number),
            error=json.dumps({"message": f"why {number}"}),
            follow_ups=(NewJob("poll", str(each.id), key=f"poll-{number}"),) if number % 7 else (),
        )
        for number, each in enumerate(taken)
    ]
    traces = [f"trace {number}" for number in range(250)]
    assert await claim_calls.finish_jobs(prepared, batch, traces) == {each.id for each in taken}
    told = {read(clean_up).id: clean_up for clean_up in await clean_ups(prepared)}
    for number, each in enumerate(taken):
        ended = read(told[each.id])
        assert (ended.result, ended.state) == (number, batch[number].state)
        assert ended.errors == [{"message": f"why {number}"}]
        assert told[each.id].traceparent == f"trace {number}"
        polls = await prepared.fetch(
            "SELECT id FROM hybrid_runner.jobs WHERE key = $1", f"poll-{number}"
        )
        view = await client_calls.get_job(prepared, each.id)
        assert view is not None
        assert view.followed_by == sorted([*(row["id"] for row in polls), told[each.id].id])
        assert len(polls) == (number % 7 > 0)
