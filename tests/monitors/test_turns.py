"""Limits count for whom is asked, whoever asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pytest
from yarl import URL

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.addresses import AddressRules
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.session import open_session
from hybrid_runner.monitors.poller import Poller
from hybrid_runner.monitors.turns import Turns
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.monitor_counters import MonitorCounters
from tests.monitors.answers.hostile import Behaviour, Server, answering, message, serving
from tests.monitors.answers.services import NOW, service
from tests.monitors.polling import events, polling, store
from tests.support.waiting import until, until_fetched

FOREVER = float("inf")


class Crowd:
    """Counts who is there at a time; each stays until it is let go."""

    def __init__(self) -> None:
        self.here = self.most = self.gone = 0
        self._exits = asyncio.Semaphore(0)

    async def behave(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.here += 1
        self.most = max(self.most, self.here)
        await self._exits.acquire()
        self.here -= 1
        self.gone += 1
        writer.write(message())
        await writer.drain()

    async def let_go(self, count: int) -> None:
        """One after the other, so that others could come meanwhile."""
        for gone in range(self.gone + 1, self.gone + count + 1):
            await until(lambda: self.here)
            self._exits.release()
            await until(partial(self._has_lost, gone))

    def _has_lost(self, count: int) -> bool:
        return self.gone >= count


def sending(*locations: str) -> Behaviour:
    """To one after the other of these, and again from the first one."""
    count = 0

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        headers = {"Location": locations[count % len(locations)]}
        count += 1
        writer.write(message(status="302 Found", headers=headers))
        await writer.drain()

    return behave


def poller(per_host: int) -> Poller:
    return Poller(per_host, AddressRules(), {}, MonitorCounters())


def services(url: str, count: int = 5, **changed: object) -> list[Service]:
    return [
        service(f"{url}{number}", id=number, format="status", **changed)
        for number in range(1, count + 1)
    ]


def elsewhere(server: Server) -> str:
    """The same server by the name of another host."""
    return f"http://localhost:{server.port}/"


class Found(list[Polled]):
    def __call__(self, _: Service, polled: Polled) -> None:
        self.append(polled)


async def test_two_rounds_of_a_process_share_the_places_of_a_host() -> None:
    """C5: the old round of a host may not know yet that it was taken away."""
    crowd, polls, found = Crowd(), poller(2), Found()
    async with serving(crowd.behave) as server, asyncio.TaskGroup() as tasks:
        for path in ("old/", "new/"):
            asked = services(server.url + path)
            tasks.create_task(polls.poll("127.0.0.1", asked, NOW, FOREVER, found))
        await crowd.let_go(10)
    assert (crowd.most, [each.ok for each in found]) == (2, [True] * 10)


async def test_nothing_is_begun_once_the_time_of_a_round_is_over() -> None:
    """The others stay due, and the next run polls them."""
    crowd, polls, found = Crowd(), poller(1), Found()
    async with serving(crowd.behave) as server, asyncio.TaskGroup() as tasks:
        soon = time.monotonic() + 0.1
        asked = services(server.url, 3)
        tasks.create_task(polls.poll("127.0.0.1", asked, NOW, soon, found))
        await until(lambda: crowd.here and time.monotonic() > soon)
        await crowd.let_go(1)
    assert (len(found), len(server.requests)) == (1, 1)


async def test_a_redirect_takes_a_place_of_the_host_that_it_leads_to() -> None:
    """C5: and none of that which it came from."""
    crowd, polls, found = Crowd(), poller(2), Found()
    async with serving(crowd.behave) as there:
        hops = [f"{elsewhere(there)}hop/{number}" for number in range(5)]
        async with serving(sending(*hops)) as here, asyncio.TaskGroup() as tasks:
            for host, asked in (
                ("localhost", services(elsewhere(there))),
                ("127.0.0.1", services(here.url, follow=1)),
            ):
                tasks.create_task(polls.poll(host, asked, NOW, FOREVER, found))
            await until(lambda: len(here.requests) == 2 and crowd.here == 2)
            await crowd.let_go(10)
    assert (crowd.most, [each.ok for each in found]) == (2, [True] * 10)


async def test_an_address_is_asked_by_one_at_a_time_whoever_leads_there() -> None:
    """C6"""
    crowd, polls, found = Crowd(), poller(5), Found()
    async with serving(crowd.behave) as there:
        same = f"{elsewhere(there)}1"
        async with serving(sending(same)) as here, asyncio.TaskGroup() as tasks:
            for host, asked in (
                ("localhost", services(elsewhere(there), 1)),
                ("127.0.0.1", services(here.url, 5, follow=1)),
            ):
                tasks.create_task(polls.poll(host, asked, NOW, FOREVER, found))
            await until(lambda: len(here.requests) == 5 and crowd.here == 1)
            await crowd.let_go(6)
    assert (crowd.most, [each.ok for each in found]) == (1, [True] * 6)


async def test_who_waits_for_a_place_in_vain_is_put_off_and_waits_for_nobody_s_answer() -> None:
    """C5: whoever gets no place is polled another time; that is no failure of the service."""
    crowd, polls, found = Crowd(), poller(1), Found()
    async with (
        serving(crowd.behave) as there,
        serving(sending(f"{elsewhere(there)}hop")) as here,
        asyncio.TaskGroup() as tasks,
    ):
        own = services(elsewhere(there), 1)
        tasks.create_task(polls.poll("localhost", own, NOW, FOREVER, Found()))
        await until(lambda: crowd.here)
        asked = services(here.url, 1, follow=1, timeout=timedelta(milliseconds=300))
        await polls.poll("127.0.0.1", asked, NOW, FOREVER, found)
        await crowd.let_go(1)
    assert [each.is_put_off for each in found] == [True]
    assert crowd.most == 1


async def test_the_time_that_it_waited_is_no_latency_of_the_service() -> None:
    clock, waited = asyncio.get_running_loop().time, 0.0

    async def move(_: URL) -> None:
        nonlocal waited
        began = clock()
        await until(lambda: clock() - began > 0.2)
        waited = clock() - began

    async with (
        serving(answering()) as there,
        serving(sending(there.url)) as here,
        open_session() as session,
    ):
        began = clock()
        [asked] = services(here.url, 1, follow=1)
        [polled] = await poll_group(session, [asked], now=NOW, move=move)
        took = clock() - began
    assert polled.ok
    assert polled.latency_ms <= (took - waited) * 1000 + 1


async def test_those_who_wait_for_each_other_s_hosts_all_get_there() -> None:
    """Each place is given back before another one is waited for."""
    turns = Turns(1)

    async def go(*urls: str) -> None:
        async with turns.turn(urls[0][7:8], urls[0]) as turn:
            for url in urls[1:]:
                await asyncio.sleep(0)
                await turn.move(URL(url))

    await asyncio.wait_for(
        asyncio.gather(
            *(go("http://a/", "http://b/", "http://a/") for _ in range(5)),
            *(go("http://b/", "http://a/", "http://b/") for _ in range(5)),
        ),
        60,
    )


async def test_who_asked_for_a_poll_that_was_put_off_is_answered_by_the_next_one(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def busy(_: object, group: Sequence[Service], **__: object) -> list[Polled]:
        nonlocal tried
        tried += 1
        return [
            Polled(one.id, one.url, 1, failure="timeout", error="busy", is_put_off=True)
            for one in group
        ]

    fakes = FakeServices([FakeService("orders")])
    async with fakes, polling(monitors_dsn) as (monitors, _):
        await monitors.add("orders", fakes.url("orders"), every="1h")
        await until_fetched(monitored, "SELECT count(*) FROM hybrid_monitors.standings", 1)
        with monkeypatch.context() as patched:
            patched.setattr("hybrid_runner.monitors.poller.poll_group", busy)
            asking = asyncio.create_task(monitors.poll("orders"))
            await until(lambda: tried > 1)
            assert not asking.done()
        assert (await asking).ok


async def test_what_was_put_off_is_polled_again_and_nothing_is_said_of_it(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_: object, group: Sequence[Service], **__: object) -> list[Polled]:
        return [
            Polled(one.id, one.url, 1, failure="timeout", error="busy", is_put_off=True)
            for one in group
        ]

    standing = "SELECT ok, failures, due_at > now() FROM hybrid_monitors.standings"
    fakes = FakeServices([FakeService("orders")])
    with monkeypatch.context() as patched:
        patched.setattr("hybrid_runner.monitors.poller.poll_group", busy)
        async with fakes, polling(monitors_dsn):
            await store(monitored, fakes, "orders")
            await until_fetched(monitored, "SELECT count(*) FROM hybrid_monitors.standings", 1)
    [row] = await monitored.fetch(standing)
    assert tuple(row) == (None, 0, True)
    assert not await events(monitored, "poll:error", "service:down")
