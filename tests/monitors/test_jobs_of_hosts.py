"""The job of a host: when it is there, and who may not touch it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.errors import StaleClaim
from hybrid_runner.model.monitors import Polled
from hybrid_runner.monitors.answers import poll as polls
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.monitors.polling import (
    IDLE,
    POLLED,
    ROUNDS,
    app_of,
    events,
    polling,
    store,
    told,
    visits,
)
from tests.support.monitored import age
from tests.support.waiting import until, until_fetched
from tests.support.working import working


async def test_a_host_whose_job_is_gone_gets_it_back(
    monitors_dsn: str, monitored: Connection
) -> None:
    """The reconciler, at its first turn."""
    fakes = FakeServices([FakeService("orders")])
    async with fakes:
        await store(monitored, fakes, "orders")
        await monitored.execute("DELETE FROM hybrid_runner.jobs")
        await monitored.execute("DELETE FROM hybrid_runner.signals")
        async with polling(monitors_dsn):
            await until_fetched(monitored, POLLED, 1)
            upkeep = "SELECT count(*) FROM hybrid_runner.jobs WHERE key = 'monitors.upkeep'"
            await until_fetched(monitored, upkeep, 1)
            ended = "SELECT ended_at IS NOT NULL FROM hybrid_monitors.upkeep_runs"
            await until_fetched(monitored, ended, True)


async def test_what_producers_store_under_names_of_ours_ends_with_its_first_run(
    monitors_dsn: str, monitored: Connection
) -> None:
    """Otherwise each job that repeats itself would stay for ever."""
    stored = [
        await monitored.fetchval(
            "SELECT hybrid_runner.enqueue($1, $2::jsonb, queue => 'monitors', key => $3)", *each
        )
        for each in (
            ("monitors.upkeep", "{}", None),
            ("monitors.upkeep", "{}", "another"),
            ("monitors.round", '{"host": "a.internal"}', None),
            ("monitors.round", '{"host": "a.internal"}', "monitors:b.internal"),
        )
    ]
    ended = (
        "SELECT array_agg(state::text ORDER BY id) FROM hybrid_runner.archive WHERE id = ANY ($1)"
    )
    async with polling(monitors_dsn):
        await until_fetched(
            monitored, ended, ["completed", "completed", "cancelled", "cancelled"], stored
        )


async def test_a_round_that_was_taken_away_stores_nothing(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker was declared dead while it polled, and another one has the host by now."""
    fakes = FakeServices([FakeService("orders")])
    taken_away, raised = asyncio.Event(), list[StaleClaim]()
    poll_group = polls.poll_group

    async def slowly(*arguments: object, **named: object) -> list[Polled]:
        found = await poll_group(*arguments, **named)  # type: ignore[arg-type]
        await monitored.execute(
            "UPDATE hybrid_runner.jobs SET claim = claim + 1000000 WHERE kind = 'monitors.round'"
        )
        taken_away.set()
        return found

    monkeypatch.setattr("hybrid_runner.monitors.poller.poll_group", slowly)

    def stale(text: str) -> StaleClaim:
        raised.append(StaleClaim(text))
        return raised[-1]

    monkeypatch.setattr("hybrid_runner.monitors.round.StaleClaim", stale)
    app, _ = app_of(monitors_dsn)
    app.use(heartbeat="1m")  # a heartbeat would stop the attempt before it writes
    async with fakes, working(app):
        await store(monitored, fakes, "orders")
        await asyncio.wait_for(taken_away.wait(), 120)
        await until(lambda: raised)
        assert await monitored.fetchval(POLLED) == 0
        assert not await events(monitored)


async def test_a_stop_in_the_middle_gives_the_services_back_at_once(
    monitors_dsn: str, monitored: Connection
) -> None:
    fakes = FakeServices([FakeService("orders", "hanging"), FakeService("stock")])
    app, monitors = app_of(monitors_dsn)
    app.use(grace="100ms")
    async with fakes:
        async with working(app):
            await monitors.add("orders", fakes.url("orders"), timeout="60s")
            await until(lambda: fakes.journal.begun["orders"])
        fakes.play("orders", "healthy")
        async with polling(monitors_dsn):
            await until_fetched(monitored, POLLED, 1)
        [row] = await monitored.fetch(
            "SELECT attempt FROM hybrid_runner.jobs WHERE kind = 'monitors.round'"
        )
        assert row["attempt"] == 0
        assert not await events(monitored, "poll:error")


async def test_a_host_without_services_gives_its_job_up(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid_runner.monitors.kinds.IDLE", timedelta(milliseconds=100))
    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"))
        await until_fetched(monitored, POLLED, 1)
        await monitors.remove("orders")
        await told(monitored, "service:stopped")
        await until_fetched(monitored, ROUNDS, 0)
        await monitors.add("orders", fakes.url("orders"))
        await until(lambda: visits(fakes, "orders") == 2)


async def test_a_new_service_wakes_the_job_of_a_host_that_had_none_left(
    monitors_dsn: str, monitored: Connection
) -> None:
    """C1: its job has long to wait, and waits for the signal of its host."""
    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"))
        await until_fetched(monitored, POLLED, 1)
        await monitors.remove("orders")
        await told(monitored, "service:stopped")
        idle = f"{IDLE} AND waits_for = 'monitors:127.0.0.1' AND run_at > now() + interval '9 min'"
        await until_fetched(monitored, idle, 1)
        await monitors.add("orders", fakes.url("orders"))
        await told(monitored, "service:started", 2)


async def test_rounds_go_on_when_the_clock_was_set_back(
    monitors_dsn: str, monitored: Connection
) -> None:
    """Until it has caught up would be an hour."""
    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"), every="5s")
        await until_fetched(monitored, POLLED, 1)
        await until_fetched(monitored, IDLE, 1)
        await age(monitored, -3600)
        await monitored.execute(
            "UPDATE hybrid_runner.jobs SET run_at = run_at + interval '1 h'"
            " WHERE kind = 'monitors.round'"
        )
        await monitor_calls.wake_set_back(monitored)
        await until(lambda: visits(fakes, "orders") > 1)
