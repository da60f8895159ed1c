"""Rounds in which something is late, is lost or is a fault of ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.durations import parse_duration
from hybrid_runner.model.monitors import Service
from hybrid_runner.monitors import round as rounds
from hybrid_runner.policy.monitors import decide
from hybrid_runner.resilience import Breaker
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.monitors.answers.hostile import answering, message, serving
from tests.monitors.polling import app_of, polling, store, told, visits
from tests.support.waiting import until, until_fetched
from tests.support.working import working

QUICK = Breaker(failures=1, cooldown="1s")
POLLED = "SELECT array_agg(name ORDER BY name) FROM hybrid_monitors.standings WHERE polled_at > $1"
HANG = (
    "INSERT INTO hybrid_monitors.services (name, url, every, timeout)"
    " SELECT name, url, '5 s', $3 FROM unnest($1::text[], $2::text[]) AS n (name, url)"
)
TIMED_OUT = "SELECT count(*) FROM hybrid_monitors.standings WHERE failure = 'timeout'"
SIZES = (
    "SELECT count(*), sum(octet_length(error::text)) FILTER (WHERE NOT error ? 'unhealthy'),"
    " max(octet_length(message)), min(octet_length(message)) FROM hybrid_monitors.errors"
)
BREAKER = "SELECT breaker FROM hybrid_monitors.standings"


async def test_c2_a_probe_is_written_down_before_it_is_sent(
    monitors_dsn: str, monitored: Connection
) -> None:
    """Should its worker die, the next one knows of it."""
    seen = list[str | None]()
    looking = await connect(monitors_dsn)

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await looking.fetchval(BREAKER))
        writer.write(message(status="500 Broken"))
        await writer.drain()

    async with serving(behave) as server, polling(monitors_dsn, breaker=QUICK) as (monitors, _):
        await monitors.add("orders", server.url)
        await until(lambda: len(seen) >= 3)
    await looking.close()
    assert seen[:3] == [None, "half_open", "half_open"]


async def test_c2_a_probe_that_cannot_be_written_down_is_not_sent(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its service was closed, paused or moved meanwhile."""
    tried = 0

    async def begin_probes(*_: object) -> set[int]:
        nonlocal tried
        tried += 1
        return set()

    fakes = FakeServices([FakeService("orders", "failing")])
    async with fakes, polling(monitors_dsn, breaker=QUICK) as (monitors, _):
        monkeypatch.setattr("hybrid_runner.storage.monitor_calls.begin_probes", begin_probes)
        await monitors.add("orders", fakes.url("orders"))
        await until(lambda: tried > 1)
    assert visits(fakes, "orders") == 1


async def test_what_was_found_is_stored_while_others_are_still_waited_for(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_EVERY", 0.05)
    fakes = FakeServices([FakeService("hangs", "hanging"), FakeService("orders")])
    async with fakes, polling(monitors_dsn):
        began = await monitored.fetchval("SELECT now()")
        await monitored.execute(
            "INSERT INTO hybrid_monitors.services (name, url, timeout)"
            " VALUES ('hangs', $1, '60 s'), ('orders', $2, '60 s')",
            fakes.url("hangs"),
            fakes.url("orders"),
        )
        await until_fetched(monitored, POLLED, ["orders"], began)
        assert not visits(fakes, "hangs")


async def test_what_was_answered_counts_although_the_network_is_gone_since(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 7: only polls that failed on this side are missed."""
    monkeypatch.setattr("hybrid_runner.monitors.poller.Poller.is_cut_off", True)
    fakes = FakeServices([FakeService("fails", "failing"), FakeService("orders")])
    async with fakes, polling(monitors_dsn):
        began = await monitored.fetchval("SELECT now()")
        await store(monitored, fakes, "fails", "orders")
        await until_fetched(monitored, POLLED, ["fails", "orders"], began)


async def test_a_poll_of_which_nothing_can_be_decided_holds_up_no_other(
    monitors_dsn: str,
    monitored: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(service: Service, *arguments: Any, **named: Any) -> Any:
        if service.name == "odd":
            raise ZeroDivisionError
        return decide(service, *arguments, **named)

    monkeypatch.setattr(rounds, "decide", fails)
    fakes = FakeServices([FakeService("odd"), FakeService("orders")])
    async with fakes, polling(monitors_dsn):
        began = await monitored.fetchval("SELECT now()")
        await store(monitored, fakes, "odd", "orders")
        await until_fetched(monitored, POLLED, ["orders"], began)
        started = await told(monitored, "service:started", 2)
    assert {each["serviceName"] for each in started} == {"odd", "orders"}
    due = "SELECT due_at > now() FROM hybrid_monitors.standings WHERE name = 'odd'"
    assert await monitored.fetchval(due)
    [line] = {record.getMessage() for record in caplog.records if record.levelname == "ERROR"}
    assert line == "odd: what its poll means cannot be decided; again after its interval"


@pytest.mark.parametrize("timeout", ["60 s", "1 s"])
async def test_hosts_that_hang_use_half_of_the_slots(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch, timeout: str
) -> None:
    """A host that answers is polled before the time of any of them is over; each has its turn."""
    monkeypatch.setattr(rounds, "_EVERY", 0.1)
    names = [f"hangs-{number}" for number in range(2, 8)]
    fakes = FakeServices(
        [
            *(FakeService(name, "hanging", f"127.0.0.{name[-1]}") for name in names),
            FakeService("orders"),
        ]
    )
    app, _ = app_of(monitors_dsn)
    async with fakes, working(app, {"monitors": 4}):
        began = await monitored.fetchval("SELECT now()")
        urls = [fakes.url(name) for name in names]
        await monitored.execute(HANG, names, urls, parse_duration(timeout))
        await until(lambda: len(fakes.connections) >= 2)
        if timeout == "1 s":
            await until_fetched(monitored, TIMED_OUT, len(names))
            return
        await store(monitored, fakes, "orders")
        await until_fetched(monitored, f"{POLLED} AND name = 'orders'", ["orders"], began)
        assert not await monitored.fetchval(TIMED_OUT)


async def test_errors_of_one_answer_are_stored_up_to_a_bound(
    monitors_dsn: str, monitored: Connection
) -> None:
    """An answer of a megabyte that is another one each time does not fill the disk."""
    items = [
        {
            "name": f"d{number}",
            "healthy": False,
            "error": {"x": "y" * 900},
            "errorMessage": "z" * 900,
        }
        for number in range(500)
    ]
    behaviour = answering(json.dumps(items).encode())
    async with serving(behaviour) as server, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", server.url)
        await until_fetched(monitored, "SELECT ok FROM hybrid_monitors.standings", True)
        [(count, errors, longest, shortest)] = await monitored.fetch(SIZES)
        [line] = await monitors.list()
    assert count == 500
    assert errors < 65536
    assert (longest, shortest) == (900, 60)
    assert line.warnings == ("the errors have more than 65,536 bytes: some are shortened",)
