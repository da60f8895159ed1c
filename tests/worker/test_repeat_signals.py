"""Work that recurs and is run earlier by a signal: at once, once for many, and never too seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from hybrid_runner import ConfigurationError, Job, Repeat, RetryPolicy, Runner
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.settlements import Finished, Repeated, Settlement
from hybrid_runner.model.signals import Given, NotGiven
from hybrid_runner.storage import claim_calls, signal_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.settle.batch_writer import BatchWriter
from tests.storage.test_signals import SEND, number, send
from tests.support.jobs import claim, enqueue, living
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working
from tests.worker import signal_handlers

WAITING = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for = 'k'"
HOUR = timedelta(hours=1)


async def repeat(connection: Connection, taken: Claim) -> None:
    """Its run is over, and it waits for the key."""
    again = Repeated(taken, HOUR, wake_on="k")
    assert await claim_calls.repeat_jobs(connection, [again]) == {taken.id}


async def repeating(connection: Connection) -> int:
    """A job that has run once and waits for the key."""
    await living(connection)
    job_id = await enqueue(connection)
    [taken] = await claim(connection)
    await repeat(connection, taken)
    return job_id


async def taken_by(connection: Connection, taken: Claim) -> Given | NotGiven | None:
    """What the attempt is given for what it waited for."""
    answers = await signal_calls.take_signals(connection, [(taken.id, taken.number)])
    return answers.get(taken.id)


def watching(app: Runner) -> asyncio.Queue[tuple[Any, bool]]:
    """A kind that recurs by the hour or by signal, and what its runs were given."""
    runs: asyncio.Queue[tuple[Any, bool]] = asyncio.Queue()

    @app.job("watch", retry=RetryPolicy("10ms", "20ms"))
    async def watch(_: Any, job: Job) -> Repeat:
        runs.put_nowait((job.signalled, job.timed_out))
        if job.signalled == "fail" and job.attempt == 1:
            raise ValueError("the first attempt of this run")
        return Repeat("1h", wake_on="k")

    return runs


async def test_a_signal_makes_the_next_run_due_at_once(dsn: str, database: Connection) -> None:
    app = runner(dsn, Registry())
    runs = watching(app)
    async with working(app):
        await app.enqueue("watch")
        assert await asyncio.wait_for(runs.get(), 120) == (None, False)
        for number in range(3):
            await until_fetched(database, WAITING, 1)
            await app.signal("k", number)
            assert await asyncio.wait_for(runs.get(), 120) == (number, False)
        await until_fetched(database, WAITING, 1)
        assert runs.empty()


async def test_one_that_comes_while_the_run_goes_on_makes_another(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, Registry())
    begun, go_on, runs = asyncio.Event(), asyncio.Event(), list[Any]()

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Repeat:
        runs.append(job.signalled)
        begun.set()
        await go_on.wait()
        return Repeat("1h", wake_on="k")

    async with working(app) as worker:
        await app.enqueue("watch")
        await asyncio.wait_for(begun.wait(), 120)
        for number in range(20):
            await app.signal("k", number)
        go_on.set()
        await worker.settled(2)
        await until_fetched(database, WAITING, 1)
        assert runs == [None, 0]


async def test_a_run_that_fails_is_given_the_same_again(dsn: str, database: Connection) -> None:
    app = runner(dsn, Registry())
    runs = watching(app)
    async with working(app):
        await app.enqueue("watch")
        await asyncio.wait_for(runs.get(), 120)
        await app.signal("k", "fail")
        for _ in range(2):
            assert await asyncio.wait_for(runs.get(), 120) == ("fail", False)
        await until_fetched(database, WAITING, 1)
        assert runs.empty()


async def test_a_run_that_the_clock_began_has_timed_out(dsn: str) -> None:
    app = runner(dsn, Registry())
    runs: asyncio.Queue[tuple[Any, bool]] = asyncio.Queue()

    @app.job("watch")
    async def watch(_: Any, job: Job) -> Repeat:
        runs.put_nowait((job.signalled, job.timed_out))
        return Repeat("1h" if job.timed_out else "10ms", wake_on="k")

    async with working(app):
        await app.enqueue("watch")
        assert await asyncio.wait_for(runs.get(), 120) == (None, False)
        assert await asyncio.wait_for(runs.get(), 120) == (None, True)


async def test_many_signals_at_once_are_one_run_and_each_counts_once(database: Connection) -> None:
    job_id = await repeating(database)
    first = await send(database, "k", "1")
    for payload in range(2, 101):
        await send(database, "k", str(payload))
    assert await signal_calls.wake_waiting(database, [job_id]) == {job_id}
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(first, "1")
    assert await taken_by(database, taken) == Given(first, "1")
    await repeat(database, taken)
    assert not await signal_calls.wake_waiting(database, [job_id])
    assert not await signal_calls.wake_by_keys(database, ["k"], 10)
    kept = "SELECT count(*), count(payload), count(wake_of) FROM hybrid_runner.waits"
    assert tuple((await database.fetch(kept))[0]) == (100, 1, 1)


async def test_one_run_takes_a_thousand_and_the_rest_make_another(database: Connection) -> None:
    """What a statement writes is bounded."""
    job_id = await repeating(database)
    await database.execute(
        "INSERT INTO hybrid_runner.signals (key) SELECT 'k' FROM generate_series(1, 1001)"
    )
    await number(database)
    for left in (1, 0):
        assert await signal_calls.wake_waiting(database, [job_id]) == {job_id}
        [taken] = await claim(database)
        assert isinstance(await taken_by(database, taken), Given)
        count = await database.fetchval("SELECT count(*) FROM hybrid_runner.waits")
        assert count == 1001 - left
        await repeat(database, taken)
    assert not await signal_calls.wake_waiting(database, [job_id])


async def test_a_signal_of_an_open_transaction_is_for_the_run_after(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Though its number is lower than that of one that was taken."""
    job_id = await repeating(database)
    beside = await another()
    async with beside.transaction():
        late = await beside.fetchval(SEND, "k", "1")
        early = await send(database, "k", "2")
        assert late < early
        assert await signal_calls.wake_waiting(database, [job_id]) == {job_id}
        [taken] = await claim(database)
        assert await taken_by(database, taken) == Given(early, "2")
    await number(database)
    await repeat(database, taken)
    assert await signal_calls.wake_waiting(database, [job_id]) == {job_id}
    [taken] = await claim(database)
    assert await taken_by(database, taken) == Given(late, "1")


async def test_a_sweep_finds_a_run_whose_signal_nobody_heard(database: Connection) -> None:
    job_id = await repeating(database)
    await send(database, "k", "1")
    swept = await signal_calls.sweep_waiting(database, "", 0, 10)
    assert swept is not None
    assert swept.open == [job_id]


async def test_a_repeat_without_a_key_waits_for_no_signal(database: Connection) -> None:
    await repeating(database)
    await database.execute("UPDATE hybrid_runner.jobs SET run_at = clock_timestamp()")
    [taken] = await claim(database)
    assert await claim_calls.repeat_jobs(database, [Repeated(taken, HOUR)]) == {taken.id}
    assert await database.fetchval("SELECT waits_for FROM hybrid_runner.jobs") is None


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_it_says_so_in_threads_and_processes(
    dsn: str, database: Connection, executor: str
) -> None:
    app = runner(dsn, signal_handlers.app.registry)
    async with working(app):
        await app.enqueue(f"repeat-{executor}", key="r")
        await until_fetched(database, WAITING, 1)
        await app.signal("k", "x")
        memory = "SELECT data::text FROM hybrid_runner.jobs WHERE waits_for = 'k'"
        await until(lambda: database.fetchval(memory), lambda data: data == '["x"]')


@pytest.mark.parametrize("key", ["", "k" * 513, 7])
def test_a_key_that_is_none_is_refused_at_once(key: Any) -> None:
    with pytest.raises(ConfigurationError, match="key"):
        Repeat("1h", wake_on=key)


async def test_who_says_repeat_looks_once_it_is_stored_and_only_for_those_that_wait() -> None:
    """A signal that came meanwhile found nobody waiting; the sweep would find it seconds later."""
    calls = list[tuple[str, list[int]]]()

    class Table:
        async def repeat(self, batch: Sequence[Repeated]) -> set[int]:
            calls.append(("repeat", [s.claim.id for s in batch]))
            return {s.claim.id for s in batch if s.claim.id != 3}

        async def finish(self, batch: Sequence[Finished]) -> set[int]:
            return {s.claim.id for s in batch}

        async def wake_waiting(self, ids: Sequence[int]) -> None:
            calls.append(("look", [*ids]))

        async def reasons(self, _: Sequence[int]) -> dict[int, str]:
            return {}

    def taken(number: int) -> Claim:
        now = datetime.now(UTC)
        return Claim(
            number, "default", "watch", 5, "{}", None, None, now, 25, None, None, None, 1, 7, now
        )

    batch: list[Settlement] = [
        Repeated(taken(1), HOUR, wake_on="k"),
        Repeated(taken(2), HOUR),
        Repeated(taken(3), HOUR, wake_on="k"),  # somebody has asked to cancel it
    ]
    await BatchWriter(cast("Any", Table())).write(batch, again=False)
    assert calls == [("repeat", [1, 2, 3]), ("look", [1])]
