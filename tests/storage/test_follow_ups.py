"""Jobs that are stored by the statement that ends another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.errors import EnqueueError, KeyHeld, ValueRefused
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import JobView, NewJob, State
from hybrid_runner.model.settlements import Finished, Repeated
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import enqueue, running
from tests.support.waiting import until

Another = Callable[[], Awaitable[Connection]]
POLL = NewJob("poll", '{"run": 7}', key="poll-7")


async def view(connection: Connection, job: int) -> JobView:
    """The job, which is there."""
    found = await client_calls.get_job(connection, job)
    assert found is not None
    return found


async def followers(connection: Connection, kind: str = "poll") -> list[JobView]:
    """The live jobs of a kind, by id."""
    ids = await connection.fetch(
        "SELECT id FROM hybrid_runner.jobs WHERE kind = $1 ORDER BY 1", kind
    )
    return [await view(connection, row["id"]) for row in ids]


async def test_a_follow_up_is_stored_with_the_end_and_named_by_it(database: Connection) -> None:
    """B1, B2"""
    taken = await running(database)
    ending = Finished(taken, State.COMPLETED, '"task"', follow_ups=(POLL,))
    assert await claim_calls.finish_jobs(database, [ending]) == {taken.id}
    [poll] = await followers(database)
    assert (poll.key, poll.payload, poll.state) == ("poll-7", {"run": 7}, State.QUEUED)
    assert (await view(database, taken.id)).followed_by == [poll.id]


async def test_a_follow_up_has_every_option_of_its_own(database: Connection) -> None:
    taken = await running(database)
    due = datetime.now(UTC) + timedelta(seconds=2.5)
    full = NewJob(
        "poll",
        "null",
        queue="polls",
        key="k",
        priority=2,
        run_at=due,
        max_attempts=7,
        timeout=timedelta(seconds=1.5),
        finish_by=due + timedelta(days=4000),
        data="null",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        max_snoozes=3,
        max_duration=timedelta(days=3600),
        finish_within=timedelta(seconds=5),
    )
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED, follow_ups=(full,))])
    [stored] = await followers(database)
    assert stored == replace(
        stored,
        kind="poll",
        payload=None,
        data=None,
        queue="polls",
        key="k",
        priority=2,
        run_at=due,
        max_attempts=7,
        timeout=full.timeout,
        finish_by=full.finish_by,
        traceparent=full.traceparent,
        max_snoozes=3,
        max_duration=full.max_duration,
        finish_within=full.finish_within,
    )
    assert await database.fetchval(
        "SELECT payload = 'null' AND data = 'null' FROM hybrid_runner.jobs"
    )


async def test_a_follow_up_is_due_after_its_delay(database: Connection) -> None:
    """B1"""
    taken = await running(database)
    poll = replace(POLL, delay=timedelta(seconds=2))
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED, follow_ups=(poll,))])
    [stored] = await followers(database)
    assert abs((stored.run_at - stored.created_at).total_seconds() - 2) < 1


async def test_a_stale_claim_stores_no_follow_up(database: Connection) -> None:
    """B16"""
    taken = await running(database)
    stale = replace(taken, number=taken.number + 1000)
    ending = Finished(stale, State.COMPLETED, follow_ups=(POLL,))
    assert await claim_calls.finish_jobs(database, [ending]) == set()
    assert await followers(database) == []


async def test_of_two_claims_of_one_job_only_the_valid_one_leaves_follow_ups(
    database: Connection,
) -> None:
    taken = await running(database)
    stale = replace(taken, number=taken.number + 1000)
    other = NewJob("poll", key="other")
    batch = [
        Finished(stale, State.COMPLETED, follow_ups=(other,)),
        Finished(taken, State.COMPLETED, follow_ups=(POLL,)),
    ]
    await claim_calls.finish_jobs(database, batch)
    assert [job.key for job in await followers(database)] == ["poll-7"]


async def test_two_starters_of_one_run_leave_one_follow_up(database: Connection) -> None:
    """B2"""
    taken = [await running(database), await running(database)]
    batch = [Finished(each, State.COMPLETED, follow_ups=(POLL,)) for each in taken]
    assert await claim_calls.finish_jobs(database, batch) == {each.id for each in taken}
    [poll] = await followers(database)
    named = [(await view(database, each.id)).followed_by for each in taken]
    assert sorted(named, key=str) == [None, [poll.id]] or named == [[poll.id], None]


async def test_a_follow_up_may_take_over_the_key_of_the_job_that_ends(
    database: Connection,
) -> None:
    taken = await running(database, key="run-7")
    next_step = NewJob("poll", key="run-7")
    await claim_calls.finish_jobs(
        database, [Finished(taken, State.COMPLETED, follow_ups=(next_step,))]
    )
    assert [job.key for job in await followers(database)] == ["run-7"]


async def test_a_refused_follow_up_ends_nothing(database: Connection) -> None:
    taken = await running(database)
    large = NewJob("poll", f'"{"x" * 1048576}"')
    with pytest.raises(EnqueueError, match="payload is at most 1 mib"):
        await claim_calls.finish_jobs(
            database, [Finished(taken, State.COMPLETED, follow_ups=(large,))]
        )
    assert (await view(database, taken.id)).state is State.RUNNING


@pytest.mark.parametrize(
    "odd",
    [
        NewJob("poll", data='"\ud800"'),
        NewJob("poll", traceparent=b"bytes"),  # type: ignore[arg-type]
        NewJob("poll", delay="2s"),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_follow_up_is_refused_as_a_value(
    odd: NewJob, unchanged: Connection
) -> None:
    """Which the settler takes out of its job's outcome; anything else would stop it."""
    now = datetime.now(UTC)
    taken = Claim(1, "q", "k", 5, "{}", None, None, now, 5, None, None, None, 1, 1, now)
    with pytest.raises(ValueRefused, match="cannot be written as JSON"):
        await claim_calls.finish_jobs(
            unchanged, [Finished(taken, State.COMPLETED, follow_ups=(odd,))]
        )


async def test_a_key_in_an_open_transaction_is_not_waited_for(
    database: Connection, another: Another
) -> None:
    """B2: nothing is stored, and nothing has ended, until it is known who has the key."""
    taken = await running(database)
    holder = await another()
    transaction = holder.transaction()
    await transaction.start()
    await enqueue(holder, key="poll-7")
    ending = Finished(taken, State.COMPLETED, follow_ups=(POLL,))
    with pytest.raises(KeyHeld, match="still open"):
        await claim_calls.finish_jobs(database, [ending])
    assert (await view(database, taken.id)).state is State.RUNNING
    await transaction.rollback()
    assert await claim_calls.finish_jobs(database, [ending]) == {taken.id}
    assert len(await followers(database)) == 1


async def test_keys_are_taken_in_one_order_so_that_two_settlers_cannot_wait_in_a_circle(
    database: Connection,
) -> None:
    await database.execute(
        """
        CREATE TABLE public.taken (place serial, key text);
        CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO public.taken (key) VALUES (NEW.key); RETURN NEW; END
        $$;
        CREATE TRIGGER note BEFORE INSERT ON hybrid_runner.jobs
        FOR EACH ROW WHEN (NEW.kind = 'poll') EXECUTE FUNCTION public.note()
        """
    )
    first, second = await running(database), await running(database)
    batch = [
        Finished(
            first, State.COMPLETED, follow_ups=(NewJob("poll", key="d"), NewJob("poll", key="a"))
        ),
        Finished(
            second, State.COMPLETED, follow_ups=(NewJob("poll", key="c"), NewJob("poll", key="B"))
        ),
    ]
    await claim_calls.finish_jobs(database, batch)
    taken = await database.fetch("SELECT key FROM public.taken ORDER BY place")
    assert [row["key"] for row in taken] == ["B", "a", "c", "d"]


async def test_a_run_of_many_leaves_its_follow_ups_too(database: Connection) -> None:
    taken = await running(database)
    again = Repeated(taken, timedelta(minutes=1), follow_ups=(POLL,))
    assert await claim_calls.repeat_jobs(database, [again]) == {taken.id}
    assert len(await followers(database)) == 1
    # and once: its claim is over
    await database.execute("DELETE FROM hybrid_runner.jobs WHERE kind = 'poll'")
    assert await claim_calls.repeat_jobs(database, [again]) == set()
    assert await followers(database) == []


async def test_a_run_of_many_waits_for_the_key_of_its_follow_up(
    database: Connection, another: Another
) -> None:
    taken = await running(database)
    holder = await another()
    transaction = holder.transaction()
    await transaction.start()
    await enqueue(holder, key="poll-7")
    again = Repeated(taken, timedelta(minutes=1), follow_ups=(POLL,))
    with pytest.raises(KeyHeld):
        await claim_calls.repeat_jobs(database, [again])
    assert (await view(database, taken.id)).state is State.RUNNING
    await transaction.commit()
    assert await claim_calls.repeat_jobs(database, [again]) == {taken.id}
    assert await followers(database) == []


async def test_a_run_of_many_that_shall_be_cancelled_leaves_nothing(database: Connection) -> None:
    """B6"""
    taken = await running(database)
    assert await client_calls.cancel_job(database, taken.id, None) == "requested"
    again = Repeated(taken, timedelta(minutes=1), follow_ups=(POLL,))
    assert await claim_calls.repeat_jobs(database, [again]) == set()
    assert await followers(database) == []


async def test_a_worker_hears_of_a_follow_up_that_is_due(
    database: Connection, another: Another
) -> None:
    heard: list[str] = []
    listening = await another()
    await listening.add_listener("hybrid_runner.default", lambda *said: heard.append(str(said[-1])))
    taken = await running(database)
    heard.clear()
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED, follow_ups=(POLL,))])
    await until(lambda: heard, what="a ring")
    [found] = await claim_all(database)
    assert found == "poll-7"


async def claim_all(connection: Connection) -> list[str | None]:
    """The keys of all jobs of kind `poll` that are due."""
    kinds = claim_calls.Kinds([claim_calls.KindLimits("poll", 5, None)])
    result = await claim_calls.claim_jobs(connection, "default", kinds, 10, "worker-1", 999_999)
    return [each.key for each in result.claims]
