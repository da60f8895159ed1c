"""The queues are measured by one worker of a fleet, the same one while it lives."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from hybrid_runner import Worker
from hybrid_runner.model.upkeep import QueueDepth
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.values import HistogramValue
from hybrid_runner.upkeep import held_duty
from hybrid_runner.upkeep.duties import queue_depths
from hybrid_runner.upkeep.duties.queue_depths import QueueDepths, as_metric_values
from hybrid_runner.upkeep.held_duty import HeldDuty
from tests.support import inside
from tests.support.waiting import differs_from, equals, has, until, until_fetched
from tests.support.working import runner, working

HOLDER = "SELECT holder FROM hybrid_runner.duties WHERE name = 'queue_depths'"
INSERT = (
    "INSERT INTO hybrid_runner.jobs (queue, kind) SELECT 'nobodys', 'unknown' FROM"
    " generate_series(1, $1::int)"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_duty, "RENEWAL", 0.05 / 30)
    # A machine that was frozen for a moment would not be asked for long.
    monkeypatch.setattr(held_duty, "REST", 0)


async def nothing(payload: Any) -> None: ...


@asynccontextmanager
async def a_worker(dsn: str, name: str, **settings: Any) -> AsyncIterator[Worker]:
    app = runner(dsn, heartbeat=0.1, **settings)

    @app.job("note")
    async def note(payload: Any) -> None:
        pass

    async with working(app, worker_id=name) as worker:
        yield worker


def shown(worker: Worker) -> float | None:
    """How many jobs it says are due in the queue that nobody works on; None: it says nothing about
    queues.
    """
    figures = worker.status().metric_values
    if table.QUEUE_JOBS.name not in figures:
        assert table.HORIZON_AGE.name not in figures
        return None
    due = figures[table.QUEUE_JOBS.name].get(("nobodys", "due"), 0)
    assert not isinstance(due, HistogramValue)
    return due


async def until_shown(worker: Worker, due: float | None) -> None:
    await until(lambda: shown(worker), equals(due))


async def test_one_worker_shows_the_queues_and_goes_on_doing_so(
    dsn: str, database: Connection
) -> None:
    """D8"""
    await database.execute(INSERT, 3)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(a_worker(dsn, "first"))
        await until_shown(first, 3)
        second = await stack.enter_async_context(a_worker(dsn, "second"))
        holder = await database.fetchval(HOLDER)
        assert holder.startswith("first ")
        for count in (4, 5, 6):
            await database.execute(INSERT, 1)
            await until_shown(first, count)
            assert shown(second) is None
        assert await database.fetchval(HOLDER) == holder


async def test_who_stops_hands_it_on_at_once(dsn: str, database: Connection) -> None:
    await database.execute(INSERT, 3)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(a_worker(dsn, "first"))
        await until_shown(first, 3)
        second = await stack.enter_async_context(a_worker(dsn, "second"))
        await first.stop()
        assert shown(first) is None
        await until_shown(second, 3)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # left open
async def test_who_is_left_behind_by_its_event_loop_hands_it_on(
    dsn: str, database: Connection
) -> None:
    """The program's loop ended without a stop of the worker; the heartbeat has its own thread."""
    left = list[weakref.ref[Worker]]()

    async def never_stopped() -> None:
        app = runner(dsn, heartbeat=0.1, worker_id="first")
        app.job("note")(nothing)
        await app.open()
        worker = app.worker()
        await worker.start()
        await until_shown(worker, 0)
        left.append(weakref.ref(worker))

    await asyncio.to_thread(asyncio.run, never_stopped())
    await until_fetched(database, HOLDER, None)
    # Its open connections are collected here, where their warnings are expected.
    await until(lambda: gc.collect() >= 0 and left[0]() is None)


async def test_who_finds_that_another_has_it_shows_nothing_from_then_on(
    dsn: str, database: Connection
) -> None:
    async with a_worker(dsn, "first") as first:
        await until_shown(first, 0)
        await database.execute(
            "UPDATE hybrid_runner.duties SET holder = 'another 1', taken_at = now() WHERE name ="
            " 'queue_depths'"
        )
        await until_shown(first, None)
        assert await database.fetchval(HOLDER) == "another 1"


async def test_who_cannot_say_that_it_has_it_stops_showing_before_another_can_be_given_it(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = await database.fetchval(
        "SELECT extract(epoch FROM every)::float8 FROM hybrid_runner.duties"
        " WHERE name = 'queue_depths'"
    )
    assert pause > held_duty.VALIDITY * QueueDepths.every.total_seconds() > 2 * 10
    monkeypatch.setattr(held_duty, "VALIDITY", 0.5 / 30)
    async with a_worker(dsn, "first") as first:
        await until_shown(first, 0)
        await database.execute(
            "BEGIN; SELECT FROM hybrid_runner.duties WHERE name = 'queue_depths' FOR UPDATE"
        )
        await until_shown(first, None)
        await database.execute("COMMIT")
        await until_shown(first, 0)


async def test_a_measurement_that_fails_is_one_warning_and_tried_again(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute("ALTER FUNCTION hybrid_runner.horizon_age RENAME TO gone")
    async with a_worker(dsn, "first") as first:
        await until(lambda: caplog.text, has("duty queue_depths failed"))
        assert shown(first) is None
        await database.execute("ALTER FUNCTION hybrid_runner.gone RENAME TO horizon_age")
        await until_shown(first, 0)
    assert caplog.text.count("duty queue_depths failed") == 1


async def test_a_table_that_takes_long_to_measure_is_measured_less_often(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_duty, "REST", 1e9)
    async with given_to_us(dsn, database) as (depths, _):
        first = await until(depths.metric_values)
        await held_again(database, 1)
        assert depths.metric_values() is first
    assert depths.metric_values() == {}
    assert await database.fetchval(HOLDER) is None


@asynccontextmanager
async def given_to_us(
    dsn: str, database: Connection
) -> AsyncIterator[tuple[QueueDepths, HeldDuty]]:
    """The duty, without a worker and its heartbeats."""
    await database.execute(
        "UPDATE hybrid_runner.duties SET holder = 'us', taken_at = now()"
        " WHERE name = 'queue_depths'"
    )
    depths = QueueDepths()
    ours = HeldDuty(dsn, depths)
    ours.give("us")
    running = asyncio.ensure_future(ours.run())
    try:
        yield depths, ours
    finally:
        running.cancel()
        await asyncio.wait([running])
        await ours.close()


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each measurement began."""
    began: list[float] = []
    measure = worker_calls.queue_depths

    async def counted(on: Fetches) -> list[QueueDepth]:
        began.append(time.monotonic())
        return await measure(on)

    monkeypatch.setattr(worker_calls, "queue_depths", counted)
    return began


async def held_again(database: Connection, times: int) -> None:
    """Wait until who measures has said so many times more that it still does."""
    taken = "SELECT taken_at FROM hybrid_runner.duties WHERE name = 'queue_depths'"
    for _ in range(times):
        before = await database.fetchval(taken)
        await until(lambda: database.fetchval(taken), differs_from(before))


async def test_a_measurement_that_fails_is_not_repeated_sooner_than_one_that_works(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch, tries: list[float]
) -> None:
    """The measurement may have read a bloated table until its time-out."""
    monkeypatch.setattr(held_duty, "REST", 1e9)
    await database.execute("ALTER FUNCTION hybrid_runner.horizon_age RENAME TO gone")
    async with given_to_us(dsn, database) as (depths, ours):
        await until(lambda: tries)
        await held_again(database, 3)
        assert len(tries) == 1
        await database.execute(
            "UPDATE hybrid_runner.duties SET holder = 'another' WHERE name = 'queue_depths'"
        )
        await until(lambda: not inside.holds(ours))
        await database.execute(
            "UPDATE hybrid_runner.duties SET holder = 'us' WHERE name = 'queue_depths'"
        )
        ours.give("us")  # nor by giving it up in between
        await held_again(database, 3)
        assert (len(tries), depths.metric_values()) == (1, {})


async def test_who_cannot_measure_leaves_it_to_somebody_else(
    dsn: str, database: Connection, tries: list[float]
) -> None:
    await database.execute("ALTER FUNCTION hybrid_runner.horizon_age RENAME TO gone")
    async with given_to_us(dsn, database):
        await until_fetched(database, HOLDER, None)
        assert (await database.fetchval(HOLDER), len(tries)) == (None, 3)
        await database.execute("ALTER FUNCTION hybrid_runner.gone RENAME TO horizon_age")
        async with a_worker(dsn, "another") as another:
            await until_shown(another, 0)


async def test_a_measurement_that_fails_leaves_the_values_before_until_they_are_old(
    dsn: str,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with given_to_us(dsn, database) as (depths, _):
        first = await until(depths.metric_values)
        await database.execute("ALTER FUNCTION hybrid_runner.horizon_age RENAME TO gone")
        # The first one: after the third the duty is left to somebody else, with its values.
        await until(lambda: caplog.text, has("duty queue_depths failed"))
        assert depths.metric_values()[table.QUEUE_JOBS.name] == first[table.QUEUE_JOBS.name]
        monkeypatch.setattr(queue_depths, "_VALID", 0.0)
        assert depths.metric_values() == {}


async def test_who_has_it_again_shows_nothing_from_before(dsn: str, database: Connection) -> None:
    async with given_to_us(dsn, database) as (depths, ours):
        await until(depths.metric_values)
        await database.execute(
            "UPDATE hybrid_runner.duties SET holder = 'another' WHERE name = 'queue_depths'"
        )
        await until(lambda: not inside.holds(ours))
        depths.held_until = time.monotonic() + 60
        assert depths.metric_values() == {}


async def test_a_lost_hold_does_not_end_a_newer_one(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The duty is given to this worker again while it asks whether it still has it."""
    renew = worker_calls.renew_duty
    async with given_to_us(dsn, database) as (depths, ours):
        await until(depths.metric_values)

        async def lost(*_: object) -> bool:
            monkeypatch.setattr(worker_calls, "renew_duty", renew)
            ours.give("us")
            return False

        monkeypatch.setattr(worker_calls, "renew_duty", lost)
        await until(lambda: worker_calls.renew_duty, equals(renew))
        await held_again(database, 2)
        assert inside.holds(ours)
        assert depths.metric_values()


def test_of_very_many_queues_the_last_are_shown_together() -> None:
    queues = [
        QueueDepth(f"q{number:03}", 1, 2, 3, float(number), paused=False, workers=1)
        for number in range(400)
    ]
    figures = as_metric_values(queues, 0.0, 0.0)
    assert len(figures[table.QUEUE_JOBS.name]) == 3 * 301
    assert figures[table.QUEUE_JOBS.name]["(other)", "due"] == 100
    assert figures[table.QUEUE_OLDEST_DUE.name]["(other)",] == 399.0
