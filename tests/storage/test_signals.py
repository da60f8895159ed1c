"""Signals in SQL: who is woken, what is given, and that nothing is lost whatever comes first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.settlements import Requeued
from hybrid_runner.model.signals import Forgotten, Given, NotGiven
from hybrid_runner.storage import claim_calls, signal_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, enqueue, living

Another = Callable[[], Awaitable[Connection]]
HOUR = timedelta(hours=1)
SEND = "SELECT hybrid_runner.signal($1, $2)"
DUE = "SELECT run_at <= clock_timestamp() FROM hybrid_runner.jobs WHERE id = $1"


async def snooze(connection: Connection, taken: Claim, key: str = "k") -> None:
    """It waits for the key, as its handler said."""
    waits = Requeued(taken, HOUR, charged=False, why="snooze", wake_on=key)
    assert await claim_calls.requeue_jobs(connection, [waits]) == {taken.id}


async def waiting(connection: Connection, key: str = "k") -> int:
    """A new job that waits for the key."""
    await living(connection)
    job_id = await enqueue(connection)
    [taken] = await claim(connection)
    await snooze(connection, taken, key)
    return job_id


async def taken_by(connection: Connection, taken: Claim) -> Given | NotGiven | None:
    """What the attempt is given for what it waited for."""
    answers = await signal_calls.take_signals(connection, [(taken.id, taken.number)])
    return answers.get(taken.id)


async def number(connection: Connection) -> None:
    """A worker sees the signals that are committed."""
    await signal_calls.number_signals(connection, 2000)


async def send(connection: Connection, key: str, payload: str) -> int:
    """A signal that a worker has seen; its id."""
    sent: int = await connection.fetchval(SEND, key, payload)
    await number(connection)
    return sent


async def hurry(connection: Connection) -> None:
    """All time-outs are over."""
    await connection.execute("UPDATE hybrid_runner.jobs SET run_at = clock_timestamp()")


async def test_a_signal_wakes_who_waits_and_is_given_to_the_attempt(database: Connection) -> None:
    job_id = await waiting(database)
    assert not await claim(database)
    sent = await send(database, "k", '{"a": 1}')
    assert await signal_calls.wake_by_keys(database, ["other"], 10) == 0
    assert await signal_calls.wake_by_keys(database, ["k"], 10) == 1
    [taken] = await claim(database)
    assert (taken.id, taken.waits_for) == (job_id, "k")
    assert await taken_by(database, taken) == Given(sent, '{"a": 1}')


async def test_a_plain_insert_is_a_signal(database: Connection) -> None:
    job_id = await waiting(database)
    await database.execute("INSERT INTO hybrid_runner.signals (key) VALUES ('k')")
    await number(database)
    assert await signal_calls.wake_waiting(database, [job_id]) == {job_id}
    [taken] = await claim(database)
    given = await taken_by(database, taken)
    assert isinstance(given, Given)
    assert given.payload == "null"


async def test_a_time_out_is_no_signal(database: Connection) -> None:
    await waiting(database)
    await hurry(database)
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(None)


async def test_a_signal_between_the_time_out_and_the_look_counts(database: Connection) -> None:
    await waiting(database)
    await hurry(database)
    [taken] = await claim(database)
    sent = await database.fetchval(SEND, "k", "1")
    assert await taken_by(database, taken) == Given(sent, "1")


async def test_every_waiter_gets_it_once(database: Connection) -> None:
    jobs = [await waiting(database) for _ in range(3)]
    sent = await send(database, "k", "1")
    assert await signal_calls.wake_by_keys(database, ["k"], 2) == 2
    assert await signal_calls.wake_by_keys(database, ["k"], 2) == 1
    assert await signal_calls.wake_by_keys(database, ["k"], 2) == 0
    claims = await claim(database)
    assert {one.id for one in claims} == {*jobs}
    answers = await signal_calls.take_signals(database, [(one.id, one.number) for one in claims])
    assert answers == dict.fromkeys(jobs, Given(sent, "1"))
    for one in claims:
        await snooze(database, one)
    assert not await signal_calls.wake_waiting(database, jobs)
    await hurry(database)
    for one in await claim(database):
        assert await taken_by(database, one) == Given(None)


async def test_who_was_given_a_signal_does_not_hide_others_who_wait(database: Connection) -> None:
    """They wait again for the same key, and come first in each look."""
    jobs = [await waiting(database) for _ in range(4)]
    await send(database, "k", "1")
    assert await signal_calls.wake_by_keys(database, ["k"], 2) == 2
    for one in await claim(database):
        await taken_by(database, one)
        await snooze(database, one)
    assert await signal_calls.wake_by_keys(database, ["k"], 2) == 2
    assert {one.id for one in await claim(database)} == {*jobs[2:]}


async def test_signals_are_given_in_the_order_in_which_they_were_sent(database: Connection) -> None:
    await waiting(database)
    sent = [await send(database, "k", str(number)) for number in range(3)]
    for number in sent:
        await hurry(database)
        [taken] = await claim(database)
        given = await taken_by(database, taken)
        assert isinstance(given, Given)
        assert given.signal_id == number
        await snooze(database, taken)


async def test_a_signal_that_is_older_than_the_job_is_not_for_it(database: Connection) -> None:
    await send(database, "k", "1")
    job_id = await waiting(database)
    assert not await signal_calls.wake_waiting(database, [job_id])
    await send(database, "k", "2")
    assert await signal_calls.wake_waiting(database, [job_id])


async def test_signal_counts_for_a_job_that_was_stored_before_its_commit(
    database: Connection, another: Another
) -> None:
    sender = await another()
    async with sender.transaction():
        sent = await sender.fetchval(SEND, "k", "1")
        job_id = await waiting(database)
        await number(database)
    await number(database)
    assert await signal_calls.wake_by_keys(database, ["k"], 10) == 1
    [taken] = await claim(database)
    assert taken.id == job_id
    assert await taken_by(database, taken) == Given(sent, "1")


async def test_signal_wakes_no_job_before_its_number_is_committed(
    database: Connection, another: Another
) -> None:
    """The job may have been stored later: it would find nothing, and take that for its time-out."""
    await database.fetchval(SEND, "k", "1")
    numbering = await another()
    async with numbering.transaction():
        await number(numbering)
        job_id = await waiting(database)
        await number(database)
        assert not await signal_calls.wake_by_keys(database, ["k"], 10)
        assert not await signal_calls.wake_waiting(database, [job_id])
        swept = await signal_calls.sweep_waiting(database, "", 0, 10)
        assert swept is not None
        assert not swept.open
    assert not await signal_calls.wake_waiting(database, [job_id])


async def test_a_clock_that_was_set_back_loses_no_signal(database: Connection) -> None:
    """The job seems to be made after the signal."""
    job_id = await waiting(database)
    await send(database, "k", "1")
    await database.execute(OLD)
    assert await signal_calls.wake_by_keys(database, ["k"], 10) == 1
    [taken] = await claim(database)
    assert taken.id == job_id
    given = await taken_by(database, taken)
    assert isinstance(given, Given)
    assert given.payload == "1"


async def test_an_attempt_that_begins_again_is_given_the_same_signal(database: Connection) -> None:
    """B16: it was killed after it had taken it, and another signal has come."""
    job_id = await waiting(database)
    sent = await send(database, "k", "1")
    await signal_calls.wake_waiting(database, [job_id])
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(sent, "1")
    await send(database, "k", "2")
    back = Requeued(taken, HOUR, charged=True)
    assert await claim_calls.requeue_jobs(database, [back])
    # Nor is its pause cut short by that one.
    assert not await signal_calls.wake_waiting(database, [job_id])
    await hurry(database)
    [again] = await claim(database)
    assert await taken_by(database, again) == Given(sent, "1")
    assert await taken_by(database, taken) is None  # whose claim is stale


async def test_a_job_that_does_not_wait_any_more_is_given_nothing(database: Connection) -> None:
    job_id = await waiting(database)
    await hurry(database)
    [taken] = await claim(database)
    snoozed = Requeued(taken, HOUR, charged=False, why="snooze")
    await claim_calls.requeue_jobs(database, [snoozed])
    await send(database, "k", "1")
    assert not await signal_calls.wake_waiting(database, [job_id])
    await hurry(database)
    [later] = await claim(database)
    assert later.waits_for is None


async def test_whoever_holds_the_job_is_not_waited_for(
    database: Connection, another: Another
) -> None:
    job_id = await waiting(database)
    await send(database, "k", "1")
    holder = await another()
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.jobs FOR UPDATE")
        assert not await signal_calls.wake_waiting(database, [job_id])
    assert await signal_calls.wake_waiting(database, [job_id])
    [taken] = await claim(database)
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.jobs FOR UPDATE")
        assert await taken_by(database, taken) is NotGiven.LOCKED
        assert (
            await signal_calls.take_signal(database, taken.id, taken.number, "k", 1)
            is NotGiven.LOCKED
        )


async def test_whoever_cannot_wake_it_rings_all_the_same(
    database: Connection, another: Another
) -> None:
    """Two look at once: the one that comes too late may have a lock on the row when a worker looks,
    which passes over it then.
    """
    job_id = await waiting(database)
    rings: list[object] = []
    listening, holder = await another(), await another()
    await listening.add_listener("hybrid_runner.default", lambda *said: rings.append(said))
    await send(database, "k", "1")
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.jobs FOR UPDATE")
        assert not await signal_calls.wake_waiting(database, [job_id])
    await listening.fetchval("SELECT 1")
    assert len(rings) == 1
    assert await signal_calls.wake_waiting(database, [job_id])
    assert not await signal_calls.wake_waiting(database, [job_id])
    await listening.fetchval("SELECT 1")
    assert len(rings) == 2


async def test_an_open_transaction_of_a_sender_holds_up_nobody(
    database: Connection, another: Another
) -> None:
    """Its signal is given later, although others with higher numbers came first."""
    job_id = await waiting(database)
    sender = await another()
    async with sender.transaction():
        slow = await sender.fetchval(SEND, "k", '"slow"')
        quick = await send(database, "k", '"quick"')
        assert await signal_calls.wake_by_keys(database, ["k"], 10) == 1
        [taken] = await claim(database)
        assert await taken_by(database, taken) == Given(quick, '"quick"')
        await snooze(database, taken)
        assert not await signal_calls.wake_waiting(database, [job_id])
    await number(database)
    assert await signal_calls.wake_by_keys(database, ["k"], 10) == 1
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(slow, '"slow"')


# --- calls in the middle of a handler


async def test_a_call_finds_an_early_signal_and_is_answered_the_same_again(
    database: Connection,
) -> None:
    await living(database)
    await enqueue(database)
    sent = [await send(database, "k", str(number)) for number in (1, 2)]
    [taken] = await claim(database)
    call = signal_calls.take_signal
    assert await call(database, taken.id, taken.number, "k", 1) == Given(sent[0], "1")
    assert await call(database, taken.id, taken.number, "k", 2) == Given(sent[1], "2")
    assert await call(database, taken.id, taken.number, "k", 1) == Given(sent[0], "1")
    assert await call(database, taken.id, taken.number, "k", 3) is NotGiven.NOT_YET
    assert await call(database, taken.id, taken.number + 1, "k", 1) is NotGiven.STALE


async def test_a_call_that_waited_is_given_what_woke_the_job(database: Connection) -> None:
    job_id = await waiting(database)
    sent = await send(database, "k", "1")
    await signal_calls.wake_waiting(database, [job_id])
    [taken] = await claim(database)
    call = signal_calls.take_signal
    await taken_by(database, taken)
    assert await call(database, job_id, taken.number, "k", 1) == Given(sent, "1")
    assert await call(database, job_id, taken.number, "k", 2) is NotGiven.NOT_YET
    await snooze(database, taken, "other")
    await hurry(database)
    [later] = await claim(database)
    assert await call(database, job_id, later.number, "k", 1) == Given(sent, "1")


async def test_a_time_out_of_a_call_stays_one(database: Connection) -> None:
    job_id = await waiting(database)
    await hurry(database)
    [taken] = await claim(database)
    call = signal_calls.take_signal
    assert await taken_by(database, taken) == Given(None)
    assert await call(database, job_id, taken.number, "k", 1) == Given(None)
    sent = await send(database, "k", "1")
    assert await call(database, job_id, taken.number, "k", 1) == Given(None)
    assert await call(database, job_id, taken.number, "k", 2) == Given(sent, "1")
    back = Requeued(taken, HOUR, charged=True)
    await claim_calls.requeue_jobs(database, [back])
    assert not await signal_calls.wake_waiting(database, [job_id])


async def test_the_next_run_of_a_job_that_repeats_is_given_new_signals_only(
    database: Connection,
) -> None:
    await living(database)
    job_id = await enqueue(database)
    [taken] = await claim(database)
    call = signal_calls.take_signal
    first = await send(database, "k", "1")
    assert await call(database, job_id, taken.number, "k", 1) == Given(first, "1")
    await database.execute(
        "UPDATE hybrid_runner.jobs SET state = 'queued', started_at = NULL, began_at = NULL,"
        " attempt = 0, claim = NULL, worker_id = NULL"
    )
    [taken] = await claim(database)
    assert await call(database, job_id, taken.number, "k", 1) is NotGiven.NOT_YET
    second = await send(database, "k", "2")
    assert await call(database, job_id, taken.number, "k", 1) == Given(second, "2")


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_job_that_is_retried_goes_on_with_what_it_was_given(
    database: Connection, *, cancelled: bool
) -> None:
    job_id = await waiting(database)
    sent = await send(database, "k", "1")
    await signal_calls.wake_waiting(database, [job_id])
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(sent, "1")
    call = signal_calls.take_signal
    early = await send(database, "early", "2")
    assert await call(database, job_id, taken.number, "early", 1) == Given(early, "2")
    if cancelled:
        await claim_calls.requeue_jobs(database, [Requeued(taken, HOUR, charged=True)])
        assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job_id) == "cancelled"
    else:
        await database.execute("DELETE FROM hybrid_runner.workers")
        await database.fetchval("SELECT hybrid_runner.cancel($1)", job_id)
    assert await database.fetchval("SELECT hybrid_runner.retry($1)", job_id) == "queued"
    [again] = await claim(database)
    assert await taken_by(database, again) == Given(sent, "1")
    assert await call(database, job_id, again.number, "early", 1) == Given(early, "2")
    assert await call(database, job_id, again.number, "k", 1) == Given(sent, "1")


async def test_a_job_that_is_retried_waits_anew_if_its_last_run_was_given_nothing(
    database: Connection,
) -> None:
    job_id = await waiting(database)
    assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job_id) == "cancelled"
    assert await database.fetchval("SELECT hybrid_runner.retry($1)", job_id) == "queued"
    [taken] = await claim(database)
    assert taken.waits_for is None  # so job.timed_out is false
    call = signal_calls.take_signal
    assert await call(database, job_id, taken.number, "k", 1) is NotGiven.NOT_YET
    sent = await send(database, "k", "1")
    assert await call(database, job_id, taken.number, "k", 1) == Given(sent, "1")


# --- what is kept

OLD = "UPDATE hybrid_runner.signals SET sent_at = sent_at - interval '8 days'"
LONG_AGO = "UPDATE hybrid_runner.waits SET taken_at = taken_at - interval '9 days'"
WEEK, MORE = timedelta(days=7), timedelta(days=8)


async def test_signals_are_forgotten_after_a_week_and_counted_if_nobody_took_them(
    database: Connection,
) -> None:
    await waiting(database)
    await send(database, "k", "1")
    await send(database, "nobody", "1")
    await hurry(database)
    [taken] = await claim(database)
    await taken_by(database, taken)
    assert await signal_calls.forget_signals(database, WEEK, 10) == Forgotten(0, 0)
    await database.execute(OLD)
    assert await signal_calls.forget_signals(database, WEEK, 1) == Forgotten(1, 0)
    assert await signal_calls.forget_signals(database, WEEK, 1) == Forgotten(1, 1)


async def test_a_signal_that_somebody_has_yet_to_be_given_is_kept(database: Connection) -> None:
    """No worker was there for a week."""
    job_id = await waiting(database)
    await send(database, "k", "1")
    await database.execute(OLD)
    assert await signal_calls.forget_signals(database, WEEK, 10) == Forgotten(0, 0)
    assert await signal_calls.wake_waiting(database, [job_id])
    [taken] = await claim(database)
    await taken_by(database, taken)
    assert await signal_calls.forget_signals(database, WEEK, 10) == Forgotten(1, 0)


async def test_what_a_job_was_given_is_kept_while_it_can_ask_for_it_again(
    database: Connection,
) -> None:
    job_id = await waiting(database)
    await send(database, "k", "1")
    await hurry(database)
    [taken] = await claim(database)
    await taken_by(database, taken)
    await database.execute(LONG_AGO)
    assert await signal_calls.forget_waits(database, MORE, 10) == 0  # the signal is there
    await database.execute("DELETE FROM hybrid_runner.signals")
    assert await signal_calls.forget_waits(database, MORE, 10) == 0  # the attempt goes on
    await signal_calls.take_signal(database, job_id, taken.number, "k", 1)
    await snooze(database, taken)
    assert await signal_calls.forget_waits(database, MORE, 10) == 0  # its handler calls again
    await database.fetchval("SELECT hybrid_runner.cancel($1)", job_id)
    assert await signal_calls.forget_waits(database, MORE, 10) == 1


# --- what is refused


@pytest.mark.parametrize("key", ["", "k" * 513])
async def test_a_key_that_cannot_be_one_is_refused_in_one_line(
    database: Connection, key: str
) -> None:
    with pytest.raises(RunnerError, match="key of a signal must be 1 to 512 bytes"):
        await signal_calls.send_signal(database, key, "null")


async def test_a_signal_that_is_sent_once_is_one_signal(database: Connection) -> None:
    once = "SELECT hybrid_runner.signal('k', $1, once => true)"
    assert await database.fetchval(once, "1") is not None
    assert await database.fetchval(once, "2") is None
    assert await send(database, "k", "3") is not None


# --- in every order

Step = Callable[[], Awaitable[Any]]


def orders(*lengths: int) -> Iterator[tuple[int, ...]]:
    """Every way to take turns when each has so many steps to do."""
    if not any(lengths):
        yield ()
    for who, left in enumerate(lengths):
        if left:
            rest = (*lengths[:who], left - 1, *lengths[who + 1 :])
            for order in orders(*rest):
                yield (who, *order)


class Play:
    """A worker whose job is stored and put back, and looks, and two that signal and are heard of,
    each in a session of its own.
    """

    def __init__(self, sessions: list[Connection], *, looks: bool, hears: bool) -> None:
        self._worker, *self._senders, self._waker = sessions
        self._looks = looks
        self._hears = hears
        self._numbers = count()
        self._sent = dict[int, int]()

    async def run(self, order: tuple[int, ...]) -> bool:
        """Whether the job is given the signals that were committed once it was stored."""
        key = f"k{next(self._numbers)}"
        steps = [self._put_back(key), *(self._send(who, key) for who in (1, 2))]
        for who in order:
            await steps[who].__anext__()
        stored_at = order.index(0)
        later = {who for who in (1, 2) if order[stored_at:].count(who)}
        given = await self._given(key)
        await self._worker.execute("DELETE FROM hybrid_runner.jobs")
        return given == {self._sent[who] for who in later}

    async def _put_back(self, key: str) -> Any:
        await enqueue(self._worker)
        [taken] = await claim(self._worker)
        yield
        transaction = self._worker.transaction()
        await transaction.start()
        await snooze(self._worker, taken, key)
        yield
        await transaction.commit()
        yield
        if self._looks:
            await signal_calls.wake_waiting(self._worker, [taken.id])
        yield

    async def _send(self, who: int, key: str) -> Any:
        sender = self._senders[who - 1]
        transaction = sender.transaction()
        await transaction.start()
        self._sent[who] = await sender.fetchval(SEND, key, "1")
        yield
        await transaction.commit()
        await number(self._waker)
        if self._hears:
            await signal_calls.wake_by_keys(self._waker, [key], 10)
        yield

    async def _given(self, key: str) -> set[int | None]:
        given = set[int | None]()
        while claims := await claim(self._worker):
            [taken] = claims
            answer = await taken_by(self._worker, taken)
            assert isinstance(answer, Given)
            assert answer.signal_id not in given
            given.add(answer.signal_id)
            await snooze(self._worker, taken, key)
            await signal_calls.wake_waiting(self._worker, [taken.id])
        return given


@pytest.mark.parametrize("dropped", ["", "looks", "hears"])
async def test_whatever_comes_first_the_job_is_woken(
    database: Connection, another: Another, dropped: str
) -> None:
    """And each of the two looks is needed. The whole protocol is in tests/model/signals.py."""
    await living(database)
    sessions = [database, await another(), await another(), await another()]
    play = Play(sessions, looks=dropped != "looks", hears=dropped != "hears")
    lost = (order for order in orders(4, 2, 2) if not await play.run(order))
    first = await anext(lost, None)
    assert (first is not None) == bool(dropped), first
