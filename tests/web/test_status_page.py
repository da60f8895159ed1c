"""GET /status: what everybody may see, as HTML that needs no script."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from hybrid_runner.errors import ConfigurationError, DatabaseUnavailable
from hybrid_runner.model.monitor_views import PublicDependency, PublicService
from hybrid_runner.settings import Settings
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.database import PageConnection, PageDatabase
from hybrid_runner.web.pages import status_page
from hybrid_runner.web.pages.monitor_access import MonitorAccess
from hybrid_runner.web.pages.status_html import StatusPage, html_of, verdict
from hybrid_runner.web.pages.status_page import PublicPage
from tests.support.monitored_pages import monitored, served
from tests.support.moved_clock import turn

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
WELL, ILL = PublicDependency("redis", healthy=True), PublicDependency("postgres", healthy=False)


def service(
    name: str = "orders", state: str = "up", *dependencies: PublicDependency, hours: float = 1
) -> PublicService:
    return PublicService(name, state, NOW - timedelta(hours=hours), dependencies)  # type: ignore[arg-type]  # a state


class Read(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("services", "tone", "headline"),
    [
        ([], "calm", "Nothing is monitored"),
        ([service()], "good", "The service is up"),
        ([service(), service()], "good", "All services are up"),
        ([service(), service(state="unknown")], "good", "All polled services are up"),
        ([service(state="unknown")], "calm", "No service has been polled yet"),
        ([service(), service("a", "down")], "bad", "1 service is down"),
        ([service("a", "down"), service("b", "down")], "bad", "All services are down"),
        ([service(), service("a", "up", ILL, WELL)], "warn", "1 service is degraded"),
        ([service("a", "up", ILL), service("b", "down")], "bad", "1 service is down"),
        ([service(), service("a", "maintenance", ILL)], "calm", "1 service is in maintenance"),
    ],
)
def test_the_headline_says_the_worst(
    services: list[PublicService], tone: str, headline: str
) -> None:
    assert verdict(services)[:2] == (tone, headline)


def test_a_page_that_does_not_show_all_says_nothing_of_all() -> None:
    """The worst are shown: behind 1,000 that are down there may be others that are up."""
    down, new, up = service("a", "down"), service("b", "unknown"), service("c")
    assert verdict([down, down], has_more=True)[1] == "2 services are down"
    assert verdict([down], has_more=True)[1] == "1 service is down"
    assert verdict([new], has_more=True)[1] == "All polled services are up"
    assert verdict([up], has_more=True)[1] == "All services are up"


def test_what_is_unhealthy_is_seen_first_and_without_a_click() -> None:
    many = [PublicDependency(f"fine {each}", healthy=True) for each in range(45)]
    page = html_of(StatusPage([service("a", "up", *many, ILL)], has_more=False, at=NOW))
    assert "<details open>" in page
    assert page.index("postgres") < page.index("fine 0")
    assert '<li class="more">and 6 more</li>' in page
    assert ("fine 38" in page, "fine 39" in page) == (True, False)
    calm = html_of(StatusPage([service("a", "up", *many[:40])], has_more=False, at=NOW))
    assert "<details>" in calm
    assert 'class="more"' not in calm


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "for 0 s"),
        (59.9, "for 59 s"),
        (60, "for 1 min"),
        (3599, "for 59 min"),
        (3600, "for 1 h"),
        (86_399, "for 23 h"),
        (86_400, "for 1 day"),
        (1e8, "for 1,157 days"),
    ],
)
def test_how_long_is_said_in_one_unit(seconds: float, said: str) -> None:
    one = service("a", "down", hours=seconds / 3600)
    assert f">{said}<" in html_of(StatusPage([one], has_more=False, at=NOW))


def test_the_page_needs_no_script_and_loads_nothing() -> None:
    page = Read(html_of(StatusPage([service("a", "down", ILL)], has_more=False, at=NOW)))
    assert not {"script", "link", "img", "iframe", "form", "object"} & set(page.tags)
    assert not [
        name
        for name, _ in page.attributes
        if name.startswith("on") or name in ("src", "href", "style")
    ]


def test_the_worst_come_first_and_times_are_said_as_people_do() -> None:
    services = [
        service("fine", hours=49),
        service("ailing", "up", ILL, WELL),
        service("gone", "down", hours=0.7),
        service("new", "unknown"),
    ]
    text = Read(html_of(StatusPage(services, has_more=True, at=NOW))).text
    places = [text.index(name) for name in ("gone", "ailing", "new", "fine")]
    assert places == sorted(places)
    for said in ("Down for 42 min", "Degraded for 1 h", "Up for 2 days", "there are more"):
        assert said in text


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</style></title><svg onload=alert(1)>",
        "&lt;b&gt;",
        "\u202egnp.exe",
        "a\r\nSet-Cookie: b\x1b[31m",
        "' onmouseover='x",
    ],
)
def test_names_are_text_and_nothing_else(name: str) -> None:
    one = service(name, "up", PublicDependency(name, healthy=False))
    page = Read(html_of(StatusPage([one], has_more=False, at=NOW)))
    plain = Read(html_of(StatusPage([service("x", "up", ILL)], has_more=False, at=NOW)))
    assert page.tags == plain.tags
    assert [each for each, _ in page.attributes] == [each for each, _ in plain.attributes]
    assert not set("\u202e\x1b\r") & set(page.text)


async def test_it_is_off_until_it_is_switched_on(dsn: str, database: Connection) -> None:
    await monitored(database)
    async with served(dsn) as client:
        status, body = await client.get("/status")
    assert (status, "HYBRID_RUNNER_HTTP_STATUS" in body["error"]) == (404, True)


async def test_it_shows_public_fields_alone(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    down = await here.down("orders", public=True)
    await here.depends(down, "postgres", healthy=False)
    await here.up("internal tool")
    paused = await here.up("paused one", public=True)
    await database.execute(
        "UPDATE hybrid_monitors.services SET active = false WHERE id = $1", paused
    )
    async with (
        served(dsn, http_status="public=true") as client,
        client.session.get("/status") as response,
    ):
        text, headers = await response.text(), response.headers
    assert (response.status, response.content_type) == (200, "text/html")
    assert "orders" in text
    assert "postgres" in text
    for hidden in ("secret", "internal tool", "paused one", "503", "E1", "ops@"):
        assert hidden not in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    async with (
        served(dsn, http_status="all") as client,
        client.session.get("/status") as response,
    ):
        assert "internal tool" in await response.text()


async def test_it_is_made_once_however_many_ask(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_page, "_FRESH", 1000.0)  # however long the machine stands still
    here = await monitored(database)
    await here.up("orders")
    async with served(dsn, http_status="all") as client:
        async with client.session.get("/status") as response:
            first = await response.text()
        await here.down("later")
        for _ in range(10):
            async with client.session.get("/status") as response:
                assert await response.text() == first


@pytest.mark.parametrize("is_away", [False, True])
async def test_all_who_ask_at_the_same_time_wait_for_one_look(
    monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    """And not one after the other for one each, while Postgres hangs."""
    looks, answer = 0, asyncio.get_running_loop().create_future()

    async def look(*_: Any) -> list[PublicService]:
        nonlocal looks
        looks += 1
        found: list[PublicService] = await answer
        return found

    async def installed(_: object) -> bool:
        return True

    monkeypatch.setattr(monitor_view_calls, "public_services", look)
    monkeypatch.setattr(monitor_view_calls, "has_monitors", installed)
    connection = PageConnection(PageDatabase(Settings.load(), lambda: None))
    page = PublicPage(connection, MonitorAccess(connection), "all")
    request = make_mocked_request("GET", "/status")
    asking = [asyncio.create_task(page.page(request)) for _ in range(20)]
    await turn()
    assert looks == 1
    if is_away:
        answer.set_exception(DatabaseUnavailable("nobody answers"))
    else:
        answer.set_result([service()])
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert {each.status for each in answers} == {503 if is_away else 200}  # type: ignore[union-attr]  # or an HTTPException
    assert looks == 1


async def test_all_who_ask_at_the_same_time_wait_for_one_look_for_monitors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, answer = 0, asyncio.get_running_loop().create_future()

    async def look(_: object) -> bool:
        nonlocal looks
        looks += 1
        found: bool = await answer
        return found

    monkeypatch.setattr(monitor_view_calls, "has_monitors", look)
    access = MonitorAccess(PageConnection(PageDatabase(Settings.load(), lambda: None)))
    asking = [asyncio.create_task(access.require()) for _ in range(20)]
    await turn()
    answer.set_result(False)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert {each.status for each in answers} == {404}  # type: ignore[union-attr]  # HTTPNotFound
    assert looks == 1


async def test_what_is_degraded_is_shown_however_many_are_up(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is cut off behind the worst: in the order of its sections."""
    monkeypatch.setattr(status_page, "MOST_SHOWN", 3)
    here = await monitored(database)
    for name in ("a", "b"):
        await here.up(name)
    await here.add("new")
    await here.depends(await here.up("zebra"), "postgres", healthy=False)
    await here.down("yak")
    async with (
        served(dsn, http_status="all") as client,
        client.session.get("/status") as response,
    ):
        text = Read(await response.text()).text
    places = [text.index(name) for name in ("yak", "zebra", "new")]
    assert places == sorted(places)
    assert "1 service is down" in text
    assert "Only the first are shown: there are more." in text
    assert "Up " not in text


async def test_an_outage_is_no_page_and_is_over_with_it(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_page, "_FRESH", 0.0)
    await monitored(database)
    usual, answers = monitor_view_calls.public_services, [200, 503, 200]

    async def look(*arguments: Any) -> list[PublicService]:
        if answers[0] == 503:
            raise DatabaseUnavailable("nobody answers")
        return await usual(*arguments)

    monkeypatch.setattr(monitor_view_calls, "public_services", look)
    async with served(dsn, http_status="all") as client:
        while answers:
            async with client.session.get("/status") as response:
                assert response.status == answers.pop(0)


@pytest.mark.parametrize("value", ["public", "=true", "public=", "everything", ""])
def test_a_setting_that_says_nothing_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^setting http_status .*: .*public=true"):
        Settings.load(http_status=value)
