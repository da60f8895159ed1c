"""Rings that are swallowed are counted, and healed; whatever else a fallback poll finds is not
counted (A3).
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from hybrid_runner import Job, Retry, Runner, Snooze, Worker
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.instruments import MISSED_RINGS
from hybrid_runner.web.pages.health import checks_of
from tests.support import inside
from tests.support.bells import INSERT, Handlers, seen, until_asleep
from tests.support.stress import STYLES, add_nap, producing
from tests.support.waiting import differs_from, equals, until, until_fetched
from tests.support.working import runner, working

QUICK_BEATS: dict[str, Any] = {"heartbeat": "200ms"}
MANY_POLLS: dict[str, Any] = QUICK_BEATS | {
    "hybrid_poll_base": "50ms",
    "hybrid_poll_cap": "50ms",
    "doorbell_rate": 30,
}
LEFT = "SELECT count(*) FROM hybrid_runner.jobs"
MUTE_FOR_30_S = (
    "SELECT setval(doorbell::regclass, (extract(epoch FROM now()) * 1000)::bigint + 30000) FROM"
    " hybrid_runner.queues"
)
HOUR_OLD = (
    "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('note', clock_timestamp() - interval '1"
    " hour')"
)
HEAR_NO_MORE = 'UNLISTEN "hybrid_runner.default"'


def check(worker: Worker, name: str) -> tuple[str, str]:
    [found] = [check for check in checks_of(worker.status()) if check.name == name]
    return found.severity, found.reason


async def asleep_for_a_while(worker: Worker, database: Connection) -> None:
    """For longer than a job waits for the heartbeat that notices it."""
    await until_asleep(database, worker)
    inside.has_slept(worker, 60)


async def test_a_ring_that_was_swallowed_is_counted_and_reconnects_the_listener(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A3 A10 A11: the job is found all the same, and the next one comes by its ring."""
    handlers = Handlers(dsn, **QUICK_BEATS)
    async with working(handlers.app) as worker:
        await asleep_for_a_while(worker, database)
        assert check(worker, "missed_rings")[0] == "ok"
        await inside.ask_listener(worker, HEAR_NO_MORE)
        session = inside.session(worker)
        await database.execute(INSERT, "note")
        await handlers.next()
        assert seen(worker).found.get("ring", 0) == 0
        assert seen(worker).found["sweep"] == 1
        await until(lambda: seen(worker).missed == 1)
        severity, reason = check(worker, "missed_rings")
        assert (severity, "default (1 so far)" in reason) == ("warning", True)
        await until(lambda: worker.status().hearing and inside.session(worker) is not session)
        await until_asleep(database, worker)
        await database.execute(INSERT, "note")
        await handlers.next()
        assert seen(worker).found["ring"] == 1
        assert worker.status().metric_values[MISSED_RINGS.name] == {("default",): 1}
    lines = [message for message in caplog.messages if "a ring was due" in message]
    assert len(lines) == 1


async def test_a_channel_that_is_swallowed_for_good_causes_one_reconnect_a_minute(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A3"""
    handlers = Handlers(dsn, **QUICK_BEATS)
    async with working(handlers.app) as worker:
        for count in (1, 2):
            await asleep_for_a_while(worker, database)
            await inside.ask_listener(worker, HEAR_NO_MORE)
            session = inside.session(worker)
            await database.execute(INSERT, "note")
            await handlers.next()
            await until(lambda: seen(worker).missed, equals(count))
            if count == 1:
                await until(partial(inside.session, worker), differs_from(session))
                await asyncio.wait_for(worker.hearing(), 120)
        assert inside.session(worker) is session
    assert len([message for message in caplog.messages if "a ring was due" in message]) == 1


async def test_what_was_committed_late_beside_a_poll_is_not_missed(
    dsn: str, database: Connection
) -> None:
    """A3: it has been due for long, and its ring is on its way; the poll is quicker."""
    handlers = Handlers(dsn)
    async with working(handlers.app) as worker:
        await asleep_for_a_while(worker, database)
        examined, held = inside.missed_rings_examined(worker), inside.hold_rings(worker)
        inside.has_slept(worker, 1e6)
        await database.execute(HOUR_OLD)
        await until(lambda: bool(held.payloads))
        inside.tell_overdue(worker)
        await handlers.next()
        assert seen(worker).found["sweep"] == 1
        held.let_through()
        await asyncio.wait_for(examined.wait(), 120)
        assert seen(worker).missed == 0


def disorderly(dsn: str, **settings: Any) -> Runner:
    """Jobs of all sorts."""
    app = runner(dsn, **(MANY_POLLS | settings))
    add_nap(app)

    @app.job("again")
    async def again(payload: dict[str, float], job: Job) -> Any:
        if job.attempt < 2:
            return Retry(after=payload["seconds"])
        return Snooze(payload["seconds"], data=1) if job.data is None else None

    return app


async def test_in_an_ordinary_run_of_thousands_of_jobs_nothing_counts_as_missed(
    dsn: str, database: Connection
) -> None:
    """A3: late commits, delays, retries, snoozes, pauses, mutes, full workers; and three workers
    that poll all the time.
    """
    chance = random.Random()
    async with AsyncExitStack() as stack:
        workers, apps = [], []
        for slots in (1, 3, 40):
            apps.append(await stack.enter_async_context(disorderly(dsn)))
            workers.append(await stack.enter_async_context(apps[-1].worker({"default": slots})))
        producers = await stack.enter_async_context(producing(dsn, chance))
        for number, style in enumerate(chance.sample(STYLES * 2, len(STYLES))):
            await apps[0].enqueue_many(
                "again", [{"seconds": chance.uniform(0, 1.5)} for _ in range(200)]
            )
            await apps[0].enqueue_many(
                "nap", [{"seconds": 0.005} for _ in range(300)], delay=chance.uniform(0, 2)
            )
            if number % 2:
                await apps[0].pause("default")
            await producers.insert(*style.series)
            await apps[0].resume("default")
        await until_fetched(database, LEFT, 0, patience=150)
        await until(lambda: not any(inside.examines_missed_rings(worker) for worker in workers))
        assert [seen(worker).missed for worker in workers] == [0, 0, 0]
        assert sum(seen(worker).found.get("sweep", 0) for worker in workers) > 0


async def test_a_role_that_may_only_work_may_look_for_missed_rings(
    dsn: str, database: Connection
) -> None:
    """Else nothing would ever count, in silence."""
    job = await database.fetchval(INSERT, "note")
    await database.execute("SELECT hybrid_runner.open_bell('default')")
    await database.execute("SET SESSION AUTHORIZATION hybrid_runner_worker")
    assert await worker_calls.find_unannounced(database, "default", [job, 0]) == (True, 1)
    assert await worker_calls.find_unannounced(database, "nowhere", [job]) == (False, 1)


async def test_what_a_resumed_queue_had_kept_is_not_missed(dsn: str, database: Connection) -> None:
    """A3: it was inserted while another worker had muted the bell, and a poll is quicker than the
    word that all may go on.
    """
    handlers = Handlers(dsn)
    async with working(handlers.app) as worker:
        await asleep_for_a_while(worker, database)
        examined, held = inside.missed_rings_examined(worker), inside.hold_rings(worker)
        inside.has_slept(worker, 1e6)
        await database.execute("SELECT hybrid_runner.pause('default')")
        await database.execute(MUTE_FOR_30_S)
        await database.execute(HOUR_OLD)
        await database.execute("SELECT hybrid_runner.open_bell('default')")
        await database.execute("SELECT hybrid_runner.resume('default')")
        await until(lambda: bool(held.payloads))
        assert held.payloads == ["help resumed"]
        inside.tell_overdue(worker)
        await handlers.next()
        held.let_through()
        await asyncio.wait_for(examined.wait(), 120)
        assert seen(worker).missed == 0
