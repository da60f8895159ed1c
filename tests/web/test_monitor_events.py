"""GET /monitors/events: the table of events as a stream."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.database import PageConnection, PageDatabase
from hybrid_runner.web.stream import monitor_events, monitor_feed
from tests.support.logins import Login, Logins
from tests.support.monitored_pages import monitored, served
from tests.support.moved_clock import turn
from tests.support.streams import BEARER, TOKEN
from tests.support.waiting import until, until_fetched

READERS = """
SELECT coalesce(pg_sequence_last_value('hybrid_monitors.event_readers_until'), 0)
    > extract(epoch FROM clock_timestamp()) * 1000
"""
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name"
    " = 'hybrid-runner pages'"
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_feed, "LOOK", 0.02)
    monkeypatch.setattr(monitor_feed, "RENEWAL", 0.0)


async def test_a_reader_sees_what_happens_from_then_on(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.event("service:started", 1)
    async with served(dsn) as client, client.events("/monitors/events") as seen:
        number = await here.event(
            "service:down",
            1,
            {"error": "http://secret.example", "warnings": ["secret"], "since": "x"},
        )
        one = await seen.next()
    assert (one.name, one.id, one.data["serviceName"]) == ("service:down", str(number), "orders")
    assert "secret" not in str(one.data)
    assert one.data["id"] == number


async def test_with_the_token_errors_are_shown(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    number = await here.event("poll:error", 1, {"error": "answered 503"})
    async with (
        served(dsn, http_token=TOKEN) as client,
        client.session.get(
            "/monitors/events", headers=BEARER | {"Last-Event-ID": str(number - 1)}
        ) as response,
    ):
        text = await response.content.readuntil(b'"answered 503"')
    assert b"event: poll:error" in text


async def test_who_comes_back_misses_none_and_sees_none_twice(
    dsn: str, database: Connection
) -> None:
    here = await monitored(database)
    numbers = [await here.event("service:down", each) for each in range(20)]
    async with served(dsn) as client:
        async with client.events("/monitors/events", seen=str(numbers[4])) as seen:
            first = [await seen.next() for _ in range(5)]
        async with client.events("/monitors/events", seen=first[-1].id) as seen:
            rest = [await seen.next() for _ in range(10)]
            numbers.append(await here.event("service:up", 1))
            rest.append(await seen.next())
    assert [int(str(one.id)) for one in [*first, *rest]] == numbers[5:]


async def test_a_reader_that_leaves_takes_nothing_from_the_others(
    dsn: str, database: Connection
) -> None:
    here = await monitored(database)
    connection = PageConnection(PageDatabase(Settings.load(dsn=dsn), lambda: dsn))
    feed = monitor_feed.MonitorFeed(connection)
    await feed.join()
    at = await feed.join()
    feed.leave()
    news = asyncio.create_task(feed.wait(60))
    await turn()
    number = await here.event("service:up", 1)
    assert await news
    assert [one.id for one in await feed.after(at)] == [number]
    feed.leave()
    await feed.close()
    await connection.close()


async def test_who_may_only_read_sees_events_all_the_same(
    dsn: str, database: Connection, login: Logins
) -> None:
    """It may not say that somebody reads."""
    here = await monitored(database)
    async with served(login(Login.READER)) as client, client.events("/monitors/events") as seen:
        number = await here.event("service:up", 1)
        one = await seen.next()
    assert (one.name, one.id) == ("service:up", str(number))


async def test_who_comes_when_nobody_reads_sees_what_happens_from_then_on(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before had seen less."""
    monkeypatch.setattr("hybrid_runner.web.database.LINGER", 0.0)
    here = await monitored(database)
    async with served(dsn) as client:
        async with client.events("/monitors/events") as seen:
            await here.event("service:down", 1)
            await seen.next()
        await until_fetched(database, SESSIONS, 0)
        await here.event("service:down", 2)
        async with client.events("/monitors/events") as seen:
            number = await here.event("service:up", 3)
            assert (await seen.next()).id == str(number)


async def test_what_was_seen_last_is_a_number_and_a_head_takes_no_place(
    dsn: str, database: Connection
) -> None:
    await monitored(database)
    async with served(dsn, http_readers=1) as client:
        for text in ("x", "-1", "9" * 19):
            async with client.session.get(
                "/monitors/events", headers={"Last-Event-ID": text}
            ) as response:
                body = await response.json()
                assert (response.status, "Last-Event-ID is the id" in body["error"]) == (400, True)
        for _ in range(3):
            async with client.session.head("/monitors/events") as response:
                assert (response.status, response.content_type) == (200, "text/event-stream")
        async with client.events("/monitors/events"):
            pass


async def test_what_the_table_no_longer_has_is_counted(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    numbers = [await here.event("service:down", each) for each in range(6)]
    await database.execute("DELETE FROM hybrid_monitors.events WHERE id <= $1", numbers[3])
    async with (
        served(dsn) as client,
        client.events("/monitors/events", seen=str(numbers[0])) as seen,
    ):
        skipped, after = await seen.next(), await seen.next()
    assert (skipped.name, skipped.data) == ("skipped", {"at_least": 3})
    assert after.id == str(numbers[4])


async def test_an_id_of_another_database_goes_on_from_now(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.event("service:down", 1)
    async with served(dsn) as client, client.events("/monitors/events", seen="999999999") as seen:
        number = await here.event("service:up", 1)
        assert (await seen.next()).id == str(number)


async def test_a_reader_chooses_kinds_a_service_and_what_was_not_told(
    dsn: str, database: Connection
) -> None:
    here = await monitored(database)
    orders = await here.up("orders")
    other = await here.up("other")
    for service in (orders, other):
        await here.event("service:down", service)
        await here.event("status:change", service, suppressed="parent")
        await here.event("poll:error", service)
    path = "/monitors/events?kind=status:change&kind=service:down&service=orders"
    async with served(dsn) as client:
        async with client.events(path, seen="0") as seen:
            told = await seen.next()
            number = await here.event("service:down", orders)
            assert (await seen.next()).id == str(number)
        async with client.events(f"{path}&suppressed=true", seen="0") as seen:
            all_of_them = [await seen.next() for _ in range(3)]
        bad, why = await client.get("/monitors/events?kind=nothing")
        unknown, _ = await client.get("/monitors/events?service=nobody")
    assert told.data["serviceId"] == orders
    assert [(one.name, one.data.get("suppressed")) for one in all_of_them] == [
        ("service:down", None),
        ("status:change", "parent"),
        ("service:down", None),
    ]
    assert (bad, unknown) == (400, 404)
    assert "there is no 'nothing'" in why["error"]


async def test_good_polls_are_wanted_while_somebody_reads_and_no_connection_stays(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid_runner.web.database.LINGER", 0.0)
    await monitored(database)
    await until_fetched(database, READERS, False)
    async with served(dsn) as client:
        async with client.events("/monitors/events"):
            await until_fetched(database, READERS, True)
        await until_fetched(database, SESSIONS, 0)


async def test_a_silent_stream_shows_signs_of_life(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_events, "KEEP_ALIVE", 0.05)
    monkeypatch.setattr(monitor_events, "_CHECK", 0.02)
    await monitored(database)
    async with served(dsn) as client, client.events("/monitors/events") as seen:
        assert await seen.comment() == "keep-alive"
        assert seen.hint == "retry: 2000"


async def test_a_reader_that_lags_is_given_all_in_order(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits for it in memory: it reads on in the table."""
    monkeypatch.setattr(monitor_feed, "KEPT", 5)
    here = await monitored(database)
    first = await here.event("service:down", 1)
    async with served(dsn) as client, client.events("/monitors/events", seen=str(first)) as seen:
        await database.execute(
            "INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload)"
            " SELECT $1 + n, now(), 'service:up', n, jsonb_build_object('x', repeat('x', 1000))"
            " FROM generate_series(1, 3000) AS n",
            first,
        )
        await database.execute("UPDATE hybrid_monitors.event_numbers SET last = $1", first + 3000)
        got = [int(str((await seen.next()).id)) for _ in range(3000)]
    assert got == list(range(first + 1, first + 3001))


async def test_a_reader_that_takes_nothing_is_sent_away(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_events, "STUCK", 0.2)
    monkeypatch.setattr(monitor_events, "STOP_PATIENCE", 0.1)
    here = await monitored(database)
    first = await here.event("service:down", 1)
    await database.execute(
        "INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload)"
        " SELECT $1 + n, now(), 'service:up', n, jsonb_build_object('x', repeat('x', 7000))"
        " FROM generate_series(1, 3000) AS n",
        first,
    )
    await database.execute("UPDATE hybrid_monitors.event_numbers SET last = $1", first + 3000)
    async with served(dsn, http_readers=1) as client:
        _, writer = await asyncio.open_connection("127.0.0.1", client.port, limit=1)
        writer.write(b"GET /monitors/events HTTP/1.1\r\nHost: localhost\r\n")
        writer.write(b"Last-Event-ID: 1\r\n\r\n")
        await writer.drain()

        async def has_room() -> bool:
            async with client.session.get("/monitors/events") as response:
                return response.status == 200

        await until(has_room, what="the place of the one that takes nothing")
        writer.close()


async def test_readers_are_bounded_together_with_those_of_jobs(
    dsn: str, database: Connection
) -> None:
    await monitored(database)
    async with (
        served(dsn, http_readers=2, http_token=TOKEN) as client,
        client.events("/monitors/events"),
        client.events("/events"),
    ):
        status, body = await client.get("/monitors/events")
        assert (status, "HYBRID_RUNNER_HTTP_READERS" in body["error"]) == (503, True)
        async with client.session.get("/monitors/events", headers=BEARER) as response:
            assert response.status == 200


async def test_a_server_that_stops_says_so(dsn: str, database: Connection) -> None:
    await monitored(database)
    async with aiohttp.ClientSession() as own:
        async with served(dsn) as client:
            response = await own.get(f"http://127.0.0.1:{client.port}/monitors/events")
            await response.content.readuntil(b"retry: 2000\n\n")
        assert b"event: end" in await response.content.read()


async def test_an_outage_is_told_and_ends_nothing(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    kill = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name ="
        " 'hybrid-runner pages' AND datname = current_database()"
    )
    async with served(dsn) as client, client.events("/monitors/events") as seen:
        await here.event("service:down", 1)
        assert (await seen.next()).name == "service:down"
        await database.execute("ALTER TABLE hybrid_monitors.events RENAME TO hidden")
        assert (await seen.next()).name == "away"
        await database.execute("ALTER TABLE hybrid_monitors.hidden RENAME TO events")
        assert (await seen.next()).name == "back"
        await database.fetch(kill)
        await here.event("service:up", 1)
        assert (await seen.until("service:up")).data["serviceName"] == "orders"
