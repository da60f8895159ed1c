"""Pages about monitored services against those who name services, and those who ask."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from hybrid_runner.model.monitor_views import MonitorEvent
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web import database as page_database
from tests.support.monitored_pages import Monitored, served
from tests.support.streams import BEARER, TOKEN, Pages
from tests.support.waiting import until

ODD = [
    "<script>alert(1)</script>",
    "a/b",
    "a%2Fb",
    "100%",
    "..",
    "a b",
    "?query",
    "#part",
    "events/x",
    "Größe \u202e\U0001f600",
    "'; DROP TABLE hybrid_monitors.services; --",
    '"quoted"',
    "\\",
]
FILL = """
INSERT INTO hybrid_monitors.services (name, url, labels)
SELECT 'service ' || n, 'https://host' || n % 50 || '.example/health', '{"public": "true"}'
FROM generate_series(1, 10000) AS n
"""
STANDINGS = """
INSERT INTO hybrid_monitors.standings (service_id, due_at, polled_at, ok, since, host, name, url)
SELECT s.id, now(), now(), true, now(), s.host, s.name, s.url FROM hybrid_monitors.services AS s
"""
DEPENDENCIES = """
INSERT INTO hybrid_monitors.dependencies (service_id, name, canonical_name, healthy, last_checked)
SELECT s.id, d.name, d.name, s.id % 100 > 0 OR d.name <> 'redis', now()
FROM hybrid_monitors.services AS s
CROSS JOIN unnest(ARRAY['postgres', 'redis', 'queue', 'disk', 'mail']) AS d (name)
"""


async def shown(client: Pages, path: str) -> tuple[int, object]:
    """The path as it is, with the token."""
    from yarl import URL  # noqa: PLC0415  # this test alone

    url = URL(f"http://127.0.0.1:{client.port}{path}", encoded=True)
    async with client.session.get(url, headers=BEARER) as response:
        body = await response.read()
        assert response.content_type == "application/json"
        return response.status, json.loads(body)


async def test_every_name_can_be_shown_and_none_is_more_than_a_name(
    monitored: Connection, monitors_dsn: str
) -> None:
    here = Monitored(monitored)
    await monitored.execute("ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service")
    add = (
        "INSERT INTO hybrid_monitors.services (name, url, format)"
        " VALUES ($1, 'http://a.example', 'dependencies')"
    )
    for name in [*ODD, "line\nfeed", "bell\x07", "x" * 200]:
        await monitored.execute(add, name)
    await here.event("service:down", 1, {"serviceName": "a\n\nevent: forged\ndata: {}\n\n"})
    async with served(monitors_dsn, http_token=TOKEN, http_status="all") as client:
        for name in [*ODD, "line\nfeed", "bell\x07", "x" * 200]:
            status, body = await shown(client, f"/monitors/{quote(name, safe='')}")
            if name == "..":  # a client makes that a path; it is nobody's way out of it
                continue
            assert status == 200, name
            assert isinstance(body, dict)
            assert body["name"] == name
        async with client.session.get("/status") as response:
            text = await response.text()
        async with client.events("/monitors/events", seen="0") as seen:
            told = await seen.next()
    assert "<script>" not in text
    assert not {"\u202e", "\x07"} & set(text)
    assert told.name == "service:down"
    assert "forged" in told.data["serviceName"]


@pytest.mark.parametrize(
    "path",
    [
        "/monitors/%00",
        "/monitors/%ff",
        "/monitors/%ED%A0%80",
        f"/monitors/{'x' * 5000}",
        "/monitors/%2e%2e%2fjobs",
        "/monitors/a/b",
        "/monitors/%",
        "/monitors//history",
        "/monitors?text=%ff%fe",
        "/monitors?label=%00=1",
        "/monitors?offset=1000001",
        "/monitors/events?service=%00",
        "/monitors/events?kind=service:down%0d%0aX:1",
    ],
)
async def test_odd_bytes_are_answered_in_one_line(
    monitored: Connection, monitors_dsn: str, path: str
) -> None:
    async with served(monitors_dsn, http_token=TOKEN) as client:
        status, body = await shown(client, path)
    assert status in (200, 400, 404)
    if status != 200:
        assert isinstance(body, dict)
        assert "\n" not in body["error"]


@pytest.mark.parametrize("seen", ["-1", "1e3", "9" * 40, "x", "1; 2", "\u0661"])
async def test_an_event_id_is_a_number_or_refused(
    monitored: Connection, monitors_dsn: str, seen: str
) -> None:
    async with (
        served(monitors_dsn) as client,
        client.session.get("/monitors/events", headers={"Last-Event-ID": seen}) as response,
    ):
        assert response.status == 400
        assert "Last-Event-ID is" in (await response.json())["error"]


async def test_ten_thousand_services_give_small_pages(
    monitored: Connection, monitors_dsn: str
) -> None:
    for statement in (FILL, STANDINGS, DEPENDENCIES, "ANALYZE hybrid_monitors.dependencies"):
        await monitored.execute(statement)
    async with served(monitors_dsn, http_status="public=true") as client:
        status, body = await client.get("/monitors")
        assert (status, len(body["listed"]), body["more"]) == (200, 100, True)
        assert body["services"]["up"] == 10_000
        status, body = await client.get("/monitors?limit=1000&offset=9999")
        assert (status, len(body["listed"]), body["more"]) == (200, 1, False)
        async with client.session.get("/status") as response:
            text = await response.text()
    assert response.status == 200
    assert text.count('class="service ') == 1000
    assert "there are more" in text
    assert len(text) < 2_000_000


async def test_a_flood_of_readers_costs_one_look_and_no_more_places_than_there_are(
    monitored: Connection, monitors_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them read from one look at the table; those beyond get 503 at once."""
    here = Monitored(monitored)
    looks = 0
    look = monitor_view_calls.events_after

    async def counted(*arguments: Any) -> list[MonitorEvent]:
        nonlocal looks
        looks += 1
        return await look(*arguments)

    monkeypatch.setattr(monitor_view_calls, "events_after", counted)
    async with served(monitors_dsn, http_readers=20) as client:

        async def read() -> int:
            async with client.session.get("/monitors/events") as response:
                if response.status == 200:
                    await response.content.readuntil(b"retry: 2000")
                    began.append(response)
                    await response.content.readuntil(b"event: service:down")
                return response.status

        began: list[aiohttp.ClientResponse] = []
        readers = [asyncio.create_task(read()) for _ in range(60)]
        await until(
            lambda: (sum(task.done() for task in readers), len(began)),
            lambda ended_and_began: ended_and_began == (40, 20),
        )
        before = looks
        await here.event("service:down", 1)
        statuses = await asyncio.gather(*readers)
        assert looks - before < 10
    assert sorted(set(statuses)) == [200, 503]
    assert statuses.count(200) == 20


async def test_readers_that_come_and_go_leave_nothing(
    monitored: Connection, monitors_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_database, "LINGER", 0.0)
    async with served(monitors_dsn, http_readers=3) as client:
        for _ in range(30):

            async def comes_in() -> bool:
                async with client.session.get("/monitors/events") as response:
                    return response.status == 200

            await until(comes_in, what="a place after the others have left")
