"""Rounds: a worker, a real Postgres, services that behave as they like."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner import ConfigurationError, Job, WaitTimeout
from hybrid_runner.model.monitors import Polled, Service, host_key
from hybrid_runner.monitors import MonitorEvent, Monitors, PollComplete, StatusChange, standalone
from hybrid_runner.monitors import round as rounds
from hybrid_runner.resilience import Breaker
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
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
from tests.support.waiting import until, until_fetched
from tests.support.working import working


async def test_a_service_that_is_inserted_by_plain_sql_is_polled_at_once(
    monitors_dsn: str, monitored: Connection
) -> None:
    """C1: whoever inserts it, and also where a round has long been waiting."""
    fakes = FakeServices([FakeService("orders"), FakeService("stock"), FakeService("mail")])
    async with fakes, polling(monitors_dsn):
        await store(monitored, fakes, "orders")
        await until_fetched(monitored, POLLED, 1)
        await until_fetched(monitored, IDLE, 1)
        await store(monitored, fakes, "stock", "mail")
        await until_fetched(monitored, POLLED, 3)
    assert {visits(fakes, name) for name in ("orders", "stock", "mail")} == {1}
    started = [payload["serviceName"] for _, payload in await events(monitored, "service:started")]
    assert sorted(started) == ["mail", "orders", "stock"]


async def test_monitors_poll_beside_a_second_worker_of_their_runner(
    monitors_dsn: str, monitored: Connection
) -> None:
    app, _ = app_of(monitors_dsn)
    fakes = FakeServices([FakeService("orders")])
    async with fakes, app, app.worker({"monitors": 2}), app.worker({"default": 2}):
        await store(monitored, fakes, "orders")
        await until_fetched(monitored, POLLED, 1)


async def test_what_an_editor_has_not_committed_is_not_polled_and_holds_nobody_up(
    monitors_dsn: str, monitored: Connection
) -> None:
    """C1: it is polled when it is committed, though the job of its host came between."""
    fakes = FakeServices([FakeService("orders"), FakeService("stock")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        async with monitored.transaction():
            await store(monitored, fakes, "orders")
            await monitors.add("stock", fakes.url("stock"), every="1h")
            await until(lambda: visits(fakes, "stock"))
            assert not visits(fakes, "orders")
        await until(lambda: visits(fakes, "orders"))


async def test_the_client_adds_changes_pauses_and_removes(
    monitors_dsn: str, monitored: Connection
) -> None:
    fakes = FakeServices([FakeService("orders"), FakeService("other")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        service_id = await monitors.add("orders", fakes.url("orders"), every="1m", labels={"a": 1})
        await until_fetched(monitored, POLLED, 1)
        await monitors.update("orders", url=fakes.url("other"))
        await until(lambda: visits(fakes, "other"))
        [line] = await monitors.list()
        assert (line.id, line.name, line.labels) == (service_id, "orders", {"a": 1})
        assert (await monitors.show("orders")).line.id == service_id
        await monitors.pause("orders")
        await told(monitored, "service:stopped")
        await monitors.resume("orders")
        await told(monitored, "service:started", 2)
        await monitors.quiet("orders", "2h")
        await monitors.remove("orders")
        await told(monitored, "service:stopped", 2)
        assert not await monitors.list()
        with pytest.raises(ConfigurationError, match="no service called"):
            await monitors.show("orders")
        with pytest.raises(ConfigurationError, match="every"):
            await monitors.add("x", "http://x.internal", every="1s")


async def test_c6_services_of_one_address_share_a_request_and_nothing_else(
    monitors_dsn: str, monitored: Connection
) -> None:
    """Both get their rows; the changes of each are told once."""
    fakes = FakeServices([FakeService("flaps", "flapping")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        for name in ("one", "two"):
            await monitored.execute(
                "INSERT INTO hybrid_monitors.services (name, url, active) VALUES ($1, $2, false)",
                name,
                fakes.url("flaps"),
            )
        await monitored.execute("UPDATE hybrid_monitors.services SET active = true")
        await until_fetched(monitored, POLLED, 2)
        counted = "SELECT count(DISTINCT service_id), count(*) FROM hybrid_monitors.dependencies"
        [row] = await monitored.fetch(counted)
        assert tuple(row) == (2, 10)
    assert visits(fakes, "flaps") == 1
    assert monitors.counters.metric_values()


async def test_c5_at_most_five_at_a_time_and_each_place_is_given_back_by_itself(
    monitors_dsn: str, monitored: Connection
) -> None:
    """One slow service holds up nobody."""
    names = [f"service-{number}" for number in range(30)]
    fakes = FakeServices(
        [FakeService("slow", "late"), *(FakeService(name, "slow") for name in names)]
    )
    async with fakes, polling(monitors_dsn):
        await monitored.execute(
            "INSERT INTO hybrid_monitors.services (name, url)"
            " SELECT * FROM unnest($1::text[], $2::text[])",
            ["slow", *names],
            [fakes.url(name) for name in ("slow", *names)],
        )
        await until(lambda: len({visit.service for visit in fakes.journal.visits}) >= 30)
        assert not visits(fakes, "slow")
        await until_fetched(monitored, POLLED, 31)
    assert max(visit.at_host for visit in fakes.journal.visits) == 5


@pytest.mark.parametrize("script", ["endless", "nan", "deep", "no_http", "wrong_types", "bomb"])
async def test_whatever_a_service_answers_its_host_goes_on(
    monitors_dsn: str, monitored: Connection, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    fakes = FakeServices([FakeService("odd", script), FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (_, worker):
        await store(monitored, fakes, "odd", "orders")
        await until_fetched(monitored, POLLED, 2)
        await until_fetched(monitored, IDLE, 1)
        assert set(worker.status().settled) <= {"completed"}
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("mapping", '{"fields": 7}'),
        ("mapping", '{"fields": ' + "[" * 4000 + "]" * 4000 + "}"),
        ("expect", '{"status": {"equals": 1' + "0" * 8000 + "}}"),
        ("expect", '{"xor": []}'),
        ("headers", '{"Host": "a"}'),
        ("headers", '{"X": ' + "[" * 2000 + "]" * 2000 + "}"),
    ],
)
async def test_nonsense_stored_by_sql_is_a_failed_poll_of_its_service_alone(
    monitors_dsn: str, monitored: Connection, column: str, stored: str
) -> None:
    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn):
        async with monitored.transaction():
            await monitored.execute(
                f"INSERT INTO hybrid_monitors.services (name, url, {column})"
                " VALUES ('bad', $1, $2)",
                fakes.url("orders"),
                stored,
            )
            await store(monitored, fakes, "orders")
        await until_fetched(monitored, POLLED, 2)
        [error] = await told(monitored, "poll:error")
        failures = await monitored.fetch(
            "SELECT name, failure FROM hybrid_monitors.standings ORDER BY name"
        )
    assert [tuple(row) for row in failures] == [("bad", "definition"), ("orders", None)]
    assert error["serviceName"] == "bad"
    assert error["error"].startswith(column)


# --- poll now


async def test_a_poll_that_is_asked_for_is_made_at_once_and_answered(
    monitors_dsn: str, monitored: Connection
) -> None:
    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"), every="1h")
        await until_fetched(monitored, IDLE, 1)
        result = await monitors.poll("orders")
        assert (result.ok, result.error) == (True, None)
        fakes.play("orders", "failing")
        result = await monitors.poll("orders")
        assert (result.ok, result.failure) == (False, "http")
    assert visits(fakes, "orders") == 3


async def test_a_poll_is_refused_while_another_one_is_on_its_way(
    monitors_dsn: str, monitored: Connection
) -> None:
    fakes = FakeServices([FakeService("orders", "late")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"))
        await until(lambda: fakes.journal.begun["orders"])
        with pytest.raises(ConfigurationError, match="orders"):
            await monitors.poll("orders")
        with pytest.raises(ConfigurationError, match="nobody"):
            await monitors.poll("nobody")


async def test_who_asks_where_nobody_polls_is_told_so(monitors_dsn: str) -> None:
    app, monitors = app_of(monitors_dsn)
    async with app:
        await monitors.add("orders", "http://orders.internal/")
        with pytest.raises(WaitTimeout, match="does a worker"):
            await monitors.poll("orders", timeout="50ms")


async def test_a_preview_stores_nothing(monitors_dsn: str, monitored: Connection) -> None:
    fakes = FakeServices([FakeService("orders")])
    app, monitors = app_of(monitors_dsn)
    async with fakes, app:
        polled = await monitors.preview(fakes.url("orders"))
        assert (polled.ok, len(polled.items)) == (True, 5)
        polled = await monitors.preview(
            fakes.url("orders"), {"fields": {"name": "name", "healthy": "healthy"}}
        )
        assert len(polled.items) == 5
    assert not await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.services")


# --- the breaker, on its way through Postgres


async def test_c2_an_open_breaker_lets_one_probe_through_and_a_success_closes_it(
    monitors_dsn: str, monitored: Connection
) -> None:
    fakes = FakeServices([FakeService("orders", "failing")])
    breaker = Breaker(failures=1, cooldown="1s")
    async with fakes, polling(monitors_dsn, breaker=breaker) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"))
        await told(monitored, "circuit:open")
        await told(monitored, "poll:error", 3)
        fakes.play("orders", "healthy")
        await told(monitored, "circuit:close")
    begun = [visit.began for visit in fakes.journal.visits]
    assert all(late - early > 0.95 for early, late in pairwise(begun))
    kinds = [kind for kind, _ in await events(monitored, "circuit:open", "circuit:close")]
    assert kinds == ["circuit:open", "circuit:close"]


# --- who is told


async def test_each_event_is_told_to_its_handlers_as_a_job(
    monitors_dsn: str, monitored: Connection
) -> None:
    """C13: with the events' numbers, and tried again when the handler raises."""
    fakes = FakeServices([FakeService("orders", "healthy")])
    changes, completed = asyncio.Queue[StatusChange](), asyncio.Queue[PollComplete]()
    app, monitors = app_of(monitors_dsn)

    @monitors.on("status:change")
    async def page(event: StatusChange, job: Job) -> None:
        if job.attempt == 1:
            raise RuntimeError("the pager is busy")
        changes.put_nowait(event)

    @monitors.on("poll:complete")
    async def note(event: PollComplete) -> None:
        completed.put_nowait(event)

    async with fakes, working(app):
        await monitors.add("orders", fakes.url("orders"))
        first = await asyncio.wait_for(completed.get(), 120)
        assert (first.success, first.dependencies_updated, first.status_changes) == (True, 5, ())
        fakes.play("orders", "flapping")
        while not await events(monitored, "status:change"):
            await monitors.poll("orders")
        change = await asyncio.wait_for(changes.get(), 120)
    [row] = await monitored.fetch(
        "SELECT id, payload ->> 'dependencyName' AS name FROM hybrid_monitors.events"
        " WHERE kind = 'status:change' ORDER BY id LIMIT 1"
    )
    assert (change.id, change.dependency_name) == (row["id"], row["name"])
    assert change.service_name == "orders"


async def test_ids_of_events_have_no_gaps(monitors_dsn: str, monitored: Connection) -> None:
    fakes = FakeServices(
        [FakeService(f"s{n}", "failing", host=f"127.0.1.{n}") for n in range(1, 20)]
    )
    async with fakes, polling(monitors_dsn):
        await store(monitored, fakes, *(f"s{n}" for n in range(1, 20)))
        await told(monitored, "service:down", 19)
    ids = [row[0] for row in await monitored.fetch("SELECT id FROM hybrid_monitors.events")]
    assert sorted(ids) == list(range(1, len(ids) + 1))


def test_a_handler_is_checked_where_it_is_declared() -> None:
    _, monitors = app_of("postgresql://nowhere")
    with pytest.raises(ConfigurationError, match="there is no such event: use one of status:"):
        monitors.on("status:changed")  # type: ignore[arg-type]

    async def page(event: StatusChange) -> None: ...

    with pytest.raises(ConfigurationError, match=r"gives a PollError, and page\(\) takes a Status"):
        monitors.on("poll:error")(page)

    @monitors.on("poll:error")
    async def whatever(event: MonitorEvent) -> None: ...

    assert whatever.name == "monitors.on:poll:error:whatever"


# --- what is left when something is lost


async def test_without_a_network_polls_are_missed_and_nobody_is_called_down(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(_: object, group: list[Service], **__: object) -> list[Polled]:
        return [
            Polled(one.id, one.url, 1, failure="network", error="no route", is_local=True)
            for one in group
        ]

    fakes = FakeServices([FakeService(f"s{n}", host=f"127.0.1.{n}") for n in range(1, 6)])
    names = [f"s{n}" for n in range(1, 6)]
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await store(monitored, fakes, *names)
        await until_fetched(monitored, POLLED, 5)
        monkeypatch.setattr("hybrid_runner.monitors.poller.poll_group", cut_off)
        results = [await monitors.poll(name) for name in names]
        assert [result.failure for result in results] == ["network"] * 5
        assert ["has no network" in str(result.error) for result in results] == [
            False, False, True, True, True,
        ]  # fmt: skip
        down = await events(monitored, "service:down")
        assert len(down) == 2  # until the third one failed, nobody could know
        [row] = await monitored.fetch(
            "SELECT count(*) FILTER (WHERE ok), count(*) FILTER (WHERE due_at > now())"
            " FROM hybrid_monitors.standings"
        )
        assert tuple(row) == (3, 5)


def test_the_key_of_a_host_is_that_of_its_signal() -> None:
    assert host_key("orders.internal") == "monitors:orders.internal"


async def test_people_without_code_have_an_app() -> None:
    assert isinstance(standalone.monitors, Monitors)
    assert {kind.name for kind in standalone.app.registry} == {
        "monitors.round", "monitors.open", "monitors.upkeep",
    }  # fmt: skip


async def test_ten_thousand_services_that_come_at_once_are_spread_and_none_is_left_out(
    monitors_dsn: str, monitored: Connection
) -> None:
    """One statement; each host gets its job, and no host sees them all at once."""
    fakes = FakeServices([FakeService("orders", host=f"127.0.1.{n}") for n in range(1, 51)])
    async with fakes, polling(monitors_dsn):
        await monitored.execute(
            "INSERT INTO hybrid_monitors.services (name, url, every)"
            " SELECT 's' || n, 'http://127.0.1.' || n % 50 + 1 || ':' || $1::int || '/o?' || n,"
            " interval '1 hour' FROM generate_series(1, 10000) AS n",
            fakes.port,
        )
        await until_fetched(monitored, "SELECT count(*) FROM hybrid_monitors.standings", 10_000)
        assert await monitored.fetchval(ROUNDS) == 50
        by_minute = await monitored.fetch(
            "SELECT count(*) FROM hybrid_monitors.standings"
            " GROUP BY date_trunc('minute', due_at - (SELECT min(due_at)"
            " FROM hybrid_monitors.standings) + timestamptz '2000-01-01 00:00Z')"
        )
        assert len(by_minute) == 60
        assert all(100 < row["count"] < 240 for row in by_minute)


@pytest.mark.parametrize(
    ("count", "taken"), [(3, [3]), (6, [3, 3]), (7, [3, 3, 1])], ids=["one take", "two", "three"]
)
async def test_c1_a_run_takes_more_only_when_more_is_due(
    monitors_dsn: str,
    monitored: Connection,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    taken: list[int],
) -> None:
    """What one run cannot take at a time it takes one after the other; what is empty costs."""
    takes: dict[int, list[int]] = {}
    take_round = monitor_calls.take_round

    async def counted(on: Fetches, host: str, job_id: int, claim: int, *more: Any) -> Any:
        found = await take_round(on, host, job_id, claim, *more)
        takes.setdefault(claim, []).append(len(found.services) if found else -1)
        return found

    monkeypatch.setattr(rounds, "MOST", 3)
    monkeypatch.setattr(monitor_calls, "take_round", counted)
    fakes = FakeServices([FakeService(f"s{number}") for number in range(count)])
    async with fakes:
        await store(monitored, fakes, *(f"s{number}" for number in range(count)))
        async with polling(monitors_dsn):
            await told(monitored, "service:started", count)
            await until_fetched(monitored, IDLE, 1)
    assert next(iter(takes.values())) == taken
