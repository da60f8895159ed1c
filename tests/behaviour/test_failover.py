"""A primary loses its power while jobs run, and its standby takes over: real servers, real workers,
no restart by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from hybrid_runner import Job
from hybrid_runner.errors import RunnerError
from hybrid_runner.model.news import LookAgain, WorkerDied
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.behaviour.noting_app import RUNS, runs
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.beats import told
from tests.support.jobs import living
from tests.support.replication import Pair, pair
from tests.support.waiting import at_least, differs_from, until, until_fetched
from tests.support.working import runner

APP = "tests.behaviour.noting_app:app"
INSERT = "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('note', to_jsonb($1::int))"
LIVE = "SELECT count(*) FROM hybrid_runner.jobs"
PRODUCERS = 4


@pytest.fixture
def synchronous() -> Iterator[Pair]:
    with pair(synchronous=True) as servers:
        asyncio.run(made(servers))
        yield servers


@pytest.fixture
def asynchronous() -> Iterator[Pair]:
    with pair(synchronous=False) as servers:
        asyncio.run(made(servers))
        servers.until_replayed()
        yield servers


async def made(servers: Pair) -> None:
    connection = await connect(servers.dsn)
    await migrate(connection)
    await connection.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs"
    path.touch()
    return path


@asynccontextmanager
async def a_worker(servers: Pair, file: Path) -> AsyncIterator[WorkerProcess]:
    given = {"HYBRID_RUNNER_DSN": servers.dsn, RUNS: str(file)}
    async with worker(APP, "--queue", "default=10", cwd=ROOT, **given) as process:
        await process.says("listening on")
        yield process


async def until_said(dsn: str, query: str, value: object) -> None:
    connection = await connect(dsn)
    await until_fetched(connection, query, value, patience=120)
    await connection.close()


async def archived(servers: Pair) -> list[tuple[object, ...]]:
    connection = await connect(servers.dsn)
    rows = await connection.fetch("SELECT id, state::text, attempt FROM hybrid_runner.archive")
    await connection.close()
    return [tuple(row) for row in rows]


async def insert_until(
    stop: asyncio.Event, dsn: str, numbers: Iterator[int], acknowledged: list[int]
) -> None:
    """Insert one after the other, again and again on a new connection."""
    connection: Connection | None = None
    while not stop.is_set():
        number = next(numbers)
        try:
            connection = connection or await connect(dsn)
            await connection.execute(INSERT, number)
            acknowledged.append(number)
        except (RunnerError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            if connection is not None:
                connection.terminate()
            connection = None
            await asyncio.sleep(0.05)
    if connection is not None:
        await connection.close()


async def test_nothing_that_a_synchronous_primary_acknowledged_is_lost(
    synchronous: Pair, file: Path, tmp_path: Path
) -> None:
    """A9: queued jobs run, running handlers go on and settle on the new primary, inserts end in the
    archive exactly once.
    """
    acknowledged: list[int] = []
    numbers, stop, gate = iter(range(1_000_000)), asyncio.Event(), tmp_path / "go"
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(a_worker(synchronous, file)) for _ in range(2)]
        client = await stack.enter_async_context(runner(synchronous.dsn))
        held = [
            await client.enqueue("hold", str(gate)) for _ in range(11)
        ]  # more than one worker can take
        await until(lambda: len(runs(file, "began")), at_least(len(held)))
        producers = [
            asyncio.create_task(insert_until(stop, synchronous.dsn, numbers, acknowledged))
            for _ in range(PRODUCERS)
        ]
        await until(lambda: len(acknowledged), at_least(300))
        await asyncio.to_thread(synchronous.fail_over)
        before = len(acknowledged)
        await until(lambda: len(acknowledged), at_least(before + 300))
        stop.set()
        await asyncio.gather(*producers)
        gate.touch()
        await until_said(synchronous.standby.dsn, LIVE, 0)
        assert [await handle.wait(120) for handle in held] == ["attempt 1"] * len(
            held
        )  # the client has followed too
        assert [await process.ends() for process in workers] == [0, 0]
    assert sorted(runs(file, "began")) == sorted(handle.id for handle in held)  # once each
    connection = await connect(synchronous.dsn)
    rows = await connection.fetch(
        "SELECT (payload #>> '{}')::int AS n, count(*) AS times, min(state::text) AS state "
        "FROM hybrid_runner.archive WHERE kind = 'note' GROUP BY 1"
    )
    await connection.close()
    archived = {row["n"]: (row["times"], row["state"]) for row in rows}
    assert {n: archived.get(n) for n in acknowledged} == dict.fromkeys(
        acknowledged, (1, "completed")
    )
    assert set(archived.values()) == {(1, "completed")}


async def test_rings_arrive_again_even_if_a_mute_came_over_from_a_server_whose_clock_is_ahead(
    asynchronous: Pair,
) -> None:
    """A1 A3: the fallback poll is minutes away."""
    app = runner(
        asynchronous.dsn,
        poll_base="5m",
        poll_cap="5m",
        hybrid_poll_base="5m",
        hybrid_poll_cap="5m",
        doorbell_rate=1e6,
    )

    @app.job("note")
    async def note(payload: int) -> int:
        return payload

    async with app, app.worker({"default": 5}) as worker:
        await asyncio.wait_for(worker.hearing(), 120)
        await worker.idle()
        asynchronous.primary.ask(
            "SELECT setval(doorbell::regclass, (extract(epoch FROM now()) * 1000)::bigint + 600000)"
            " FROM hybrid_runner.queues"
        )
        asynchronous.until_replayed()
        await asyncio.to_thread(asynchronous.fail_over)
        await until_said(
            asynchronous.standby.dsn,
            "SELECT pg_sequence_last_value(doorbell::regclass) FROM hybrid_runner.queues",
            0,
        )
        await asyncio.wait_for(worker.hearing(), 120)
        await asyncio.wait_for(worker.idle(), 120)
        before = worker.status().queues[0].found.get("ring", 0)
        assert await (await app.enqueue(note, 5)).wait(120) == 5
        queue = worker.status().queues[0]
        assert (queue.found.get("ring", 0), queue.polls) == (before + 1, 0)


async def test_an_outcome_that_an_asynchronous_standby_never_got_does_not_leave_its_job_running(
    asynchronous: Pair,
) -> None:
    """The old primary took it, the new one shows the job as running, and its worker lives: it runs
    again.
    """
    app = runner(asynchronous.dsn)
    ran: list[int] = []
    go = asyncio.Event()

    @app.job("work")
    async def work(payload: int, job: Job) -> int:
        ran.append(job.id)
        await go.wait()
        return payload

    async with app, app.worker({"default": 5}) as worker:
        await asyncio.wait_for(worker.hearing(), 120)
        handle = await app.enqueue(work, 5)
        await until_said(
            asynchronous.standby.dsn,
            "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'",
            1,
        )
        await asyncio.to_thread(asynchronous.cut)
        go.set()
        assert await handle.wait(120) == 5
        await worker.idle()
        await asyncio.to_thread(asynchronous.fail_over)
        await until_said(asynchronous.standby.dsn, LIVE, 0)
        assert await archived(asynchronous) == [(handle.id, "completed", 1)]
    assert ran == [handle.id] * 2


async def test_a_worker_whose_registration_was_lost_goes_on_under_a_new_name(
    asynchronous: Pair,
) -> None:
    """And so does a claim that was lost: the job is queued on the new primary, and ends there
    once.
    """
    app = runner(asynchronous.dsn)
    go = asyncio.Event()

    @app.job("work")
    async def work(payload: int) -> int:
        await go.wait()
        return payload

    async with app:
        handle = await app.enqueue(work, 5)
        asynchronous.until_replayed()
        await asyncio.to_thread(asynchronous.cut)
        async with app.worker({"default": 5}) as worker:
            name = worker.id
            await until_said(
                asynchronous.primary.dsn,
                "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'",
                1,
            )
            await asyncio.to_thread(asynchronous.fail_over)
            go.set()
            await until_said(asynchronous.standby.dsn, LIVE, 0)
            await until_said(
                asynchronous.standby.dsn,
                "SELECT count(*) FROM hybrid_runner.workers WHERE dead_at IS NULL",
                1,
            )
            await until(lambda: worker.id, differs_from(name))
    assert await archived(asynchronous) == [(handle.id, "completed", 1)]


async def test_a_claim_that_the_new_primary_never_got_may_be_made_again_beside_the_attempt(
    asynchronous: Pair,
) -> None:
    """A4: claims are not flushed. The late outcome changes nothing, the job ends once."""
    app = runner(asynchronous.dsn)
    began = asyncio.Queue[asyncio.Future[int]]()

    @app.job("work")
    async def work(payload: int) -> int:
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        began.put_nowait(answer)
        return await answer

    async with app, app.worker({"default": 5}) as worker:
        await asyncio.wait_for(worker.hearing(), 120)
        await app.pause("default")
        handle = await app.enqueue(work, 5)
        asynchronous.until_replayed()
        await asyncio.to_thread(asynchronous.cut)
        await app.resume("default")
        first = await asyncio.wait_for(began.get(), 120)
        await asyncio.to_thread(asynchronous.fail_over)
        asynchronous.standby.ask("SELECT hybrid_runner.resume('default')")
        second = await asyncio.wait_for(began.get(), 120)
        if not first.done():  # a heartbeat may have found that its claim is gone, and stopped it
            first.set_result(1)
        await until(lambda: worker.status().stale)
        assert not await archived(asynchronous)
        second.set_result(2)
        assert await handle.wait(120) == 2
    assert await archived(asynchronous) == [(handle.id, "completed", 1)]


async def test_a_number_that_a_standby_gives_out_again_is_not_the_same_claim(
    asynchronous: Pair,
) -> None:
    """A4: the sequence is as far as the standby was."""
    await asyncio.to_thread(asynchronous.cut)
    firsts = []
    connection = await connect(asynchronous.dsn)
    firsts.append(await living(connection, "a"))
    await asyncio.to_thread(asynchronous.fail_over)
    connection.terminate()
    connection = await connect(asynchronous.dsn)
    firsts.append(await living(connection, "b"))
    await connection.close()
    blocks = {first // 10**11 for first in firsts}
    assert len(blocks) == 1  # it was given out again
    assert abs(firsts[0] - firsts[1]) > 1000


async def test_whoever_comes_new_to_a_promoted_server_declares_nobody_dead_at_once(
    asynchronous: Pair,
) -> None:
    """D5: the server ran all the while, and yet nobody could reach it as a primary."""
    lease = timedelta(seconds=10)  # longer than this machine stands still between two questions
    connection = await connect(asynchronous.dsn)
    await worker_calls.register_worker(connection, "old", "host", 1, "0", "{}", lease)
    await connection.close()
    asynchronous.until_replayed()
    up_for_longer = (
        "SELECT pg_postmaster_start_time() + lease < clock_timestamp() FROM hybrid_runner.workers"
    )
    silent_for_longer = "SELECT heartbeat_at + lease < clock_timestamp() FROM hybrid_runner.workers"
    for question in (up_for_longer, silent_for_longer):
        await until_said(asynchronous.standby.dsn, question, value=True)
    await asyncio.to_thread(asynchronous.fail_over)
    connection = await connect(asynchronous.dsn)
    first = await living(connection, "new")
    for _ in range(2):  # the first one suspects
        news = await told(connection, "new", first, queues=["default"])
        assert [one for one in news if isinstance(one, WorkerDied)] == []
    [again] = [one for one in news if isinstance(one, LookAgain)]
    assert timedelta(0) < again.after <= lease
    await connection.close()


async def test_an_old_primary_that_comes_back_as_a_standby_is_passed_over(
    asynchronous: Pair,
) -> None:
    """It comes first in the DSN, and answers."""
    app = runner(asynchronous.dsn)

    @app.job("note")
    async def note(payload: int) -> int:
        return payload

    async with app, app.worker({"default": 5}) as worker:
        await asyncio.wait_for(worker.hearing(), 120)
        asynchronous.until_replayed()
        await asyncio.to_thread(asynchronous.fail_over)
        await asyncio.to_thread(asynchronous.rejoin)
        asynchronous.standby.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name"
            " LIKE 'hybrid-runner%'"
        )
        async with asyncio.timeout(120):
            while True:  # the client's own connections were cut as well
                try:
                    assert await (await app.enqueue(note, 5)).wait(120) == 5
                    break
                except RunnerError:
                    await asyncio.sleep(0.1)
    assert asynchronous.primary.ask("SELECT pg_is_in_recovery()")
