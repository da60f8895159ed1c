"""NOTIFY and LISTEN need no right: whoever may connect can send any text on any channel, and hear
what others send. Here somebody does who has no right at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from hybrid_runner import JobCancelled
from hybrid_runner.model.messages import channel_of
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.bells import (
    EASILY_AWAKE,
    INSERT,
    MUTED_FOR_LONG,
    Handlers,
    seen,
    until_asleep,
    until_bell,
)
from tests.support.logins import Login, Logins
from tests.support.waiting import until, until_fetched
from tests.support.working import working

CHANNEL = channel_of("default").name
SEND = "SELECT pg_notify($1, $2)"
SEND_MANY = "SELECT count(pg_notify($1, replace($2, '%', i::text))) FROM generate_series(1, $3) i"
FAR_HEARTBEATS = {"lease": "20m", "heartbeat": "5m"}

WORDS = [
    "",
    "later",
    "help",
    "help resumed",
    "here somebody-%",
    "gone {worker}",
    "gone somebody-%",
    "pass now % 0",
    "pass later % 1",
    "cancel {job}",
    "cancel %",
    "resumed",
    "settings",
    "% nonsense",
]
"""What a worker hears on a queue's channel; % is a number, another one each time."""


@pytest.fixture
async def stranger(login: Logins) -> AsyncIterator[Connection]:
    """The session of a login without any right."""
    connection = await connect(login(Login.NOBODY))
    yield connection
    await connection.close()


@pytest.fixture
async def other_stranger(login: Logins) -> AsyncIterator[Connection]:
    connection = await connect(login(Login.NOBODY))
    yield connection
    await connection.close()


@pytest.mark.parametrize("word", WORDS)
async def test_a_forged_word_changes_no_job(
    dsn: str, database: Connection, stranger: Connection, word: str
) -> None:
    jobs = Handlers(dsn, **FAR_HEARTBEATS)
    async with working(jobs.app) as worker:
        running = await database.fetchval(INSERT, "hold")
        await jobs.held.wait()
        waiting = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', now() + '1 hour')"
            " RETURNING id"
        )
        before = await all_jobs(database)
        forged = word.format(worker=worker.id, job=running)
        await stranger.execute(SEND_MANY, CHANNEL, forged, 300)
        assert await database.fetchval(INSERT, "note") == await jobs.next()  # it is still found
        await inside.prove(inside.listener(worker))  # all that was sent has been heard
        beaten = inside.beaten_at(worker)
        inside.beat_soon(worker)
        await until(lambda: inside.beaten_at(worker) > beaten)
        assert worker.status().ended_loops == ()
        assert [
            job for job in await all_jobs(database) if job["id"] in (running, waiting)
        ] == before
        jobs.let_go.set()
        await until_fetched(
            database,
            "SELECT state::text FROM hybrid_runner.all_jobs WHERE id = $1",
            "completed",
            running,
        )


async def test_a_cancel_that_the_table_knows_of_is_obeyed_while_others_are_forged(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    jobs = Handlers(dsn, **FAR_HEARTBEATS)
    async with working(jobs.app) as worker:
        job = await jobs.app.enqueue("hold", {})
        other = await jobs.app.enqueue("hold", {})
        await until(lambda: seen(worker).running == 2)
        for _ in range(30):
            await stranger.execute(SEND_MANY, CHANNEL, "cancel %", 300)
        assert await job.cancel() == "requested"
        with pytest.raises(JobCancelled):
            await job.wait(120)
        assert (await other.get()).state.value == "running"
        jobs.let_go.set()
        await other.wait(120)


async def test_forged_messages_about_workers_change_no_list_and_no_doorbell(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    jobs = Handlers(dsn, **FAR_HEARTBEATS, **EASILY_AWAKE, **MUTED_FOR_LONG)
    async with working(jobs.app) as first, jobs.app.worker() as second:
        both = {first.id, second.id}
        await until(lambda: all(inside.members(each) == both for each in (first, second)))
        await database.fetchval(INSERT, "note")
        await jobs.next()
        await until_bell(database, bool)
        changes = inside.notes_changes_of_members(first)
        beaten = inside.beaten_at(first)
        for word in ("here ghost-%", f"gone {second.id}", f"gone {first.id}", f"here {second.id}"):
            await stranger.execute(SEND_MANY, CHANNEL, word, 300)
        await inside.prove(inside.listener(first))  # all that was sent has been heard
        await until(lambda: inside.beaten_at(first) > beaten)
        assert set(changes) <= {(frozenset(both), False)}
        assert inside.members(first) == both
        assert not inside.kinds_differ(first)
        await until_bell(database, bool)


async def test_forged_calls_for_help_are_heeded_a_few_times_a_second(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    jobs = Handlers(dsn, **FAR_HEARTBEATS)
    async with working(jobs.app) as worker:
        await until_asleep(database, worker)
        marks: list[None] = []
        inside.notes_marks(worker, lambda: marks.append(None))
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(100):
            await stranger.execute(SEND_MANY, CHANNEL, "help %", 10)
        await inside.prove(inside.listener(worker))
        assert len(marks) <= 6 + 5 * (loop.time() - began)
        await until_asleep(database, worker)


async def test_nobody_but_who_may_set_the_sequence_can_say_that_events_are_read(
    dsn: str, database: Connection, stranger: Connection
) -> None:
    jobs = Handlers(dsn, **FAR_HEARTBEATS)
    async with working(jobs.app) as worker:
        await stranger.execute(SEND, "hybrid_runner.~readers", "60000")
        assert await database.fetchval(INSERT, "note") == await jobs.next()
        await inside.prove(inside.listener(worker))
        assert not inside.knows_of_readers(worker)


@asynccontextmanager
async def flooding(stranger: Connection, word: str, a_second: int) -> AsyncIterator[None]:
    """So many forged words a second, in a hundred transactions."""

    async def flood() -> None:
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while True:
            await stranger.execute(SEND_MANY, CHANNEL, word, a_second // 100)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent / 100 - loop.time()))

    task = asyncio.create_task(flood())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_worker_that_is_flooded_stops_listening_and_finds_jobs_by_polls(
    dsn: str, database: Connection, stranger: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.read_few_notifications(monkeypatch)
    jobs = Handlers(dsn, poll_base="100ms", poll_cap="100ms")
    async with working(jobs.app) as worker:
        beaten = inside.beaten_at(worker)
        async with flooding(stranger, "here %", 2_000_000):
            await until(lambda: seen(worker).mode == "deaf")
            assert await database.fetchval(INSERT, "note") == await jobs.next()
            inside.beat_soon(worker)
            await until(lambda: inside.beaten_at(worker) > beaten)
        assert worker.status().ended_loops == ()


async def all_jobs(database: Connection) -> list[dict[str, object]]:
    rows = await database.fetch("SELECT * FROM hybrid_runner.jobs ORDER BY id")
    return [dict(row) for row in rows]


async def test_who_has_no_right_learns_nothing_of_the_channel_of_event_streams(
    database: Connection, login: Logins
) -> None:
    """LISTEN needs no right, so the channel's name is all that keeps ids, queues and kinds."""
    number = "SELECT last_value FROM pg_sequences WHERE sequencename = 'changes_channel_number'"
    assert await database.fetchval(number) > 2**32
    for who in (Login.NOBODY, Login.PRODUCER, Login.OTHER_PRODUCER):
        curious = await connect(login(who))
        assert await curious.fetchval(number) is None
        for attempt in (
            "SELECT hybrid_runner.changes_channel()",
            "SELECT last_value FROM hybrid_runner.changes_channel_number",
            "SELECT currval('hybrid_runner.changes_channel_number')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await curious.fetchval(attempt)
        await curious.close()
