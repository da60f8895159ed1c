"""GET /status: what everybody may see, as HTML that needs no script."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitor_views import PublicDependency, PublicService
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages.status_html import StatusPage, html_of, verdict
from tests.support.monitored_pages import monitored, served

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
    assert headers["X-Content-Type-Options"] == "nosniff"
    async with (
        served(dsn, http_status="all") as client,
        client.session.get("/status") as response,
    ):
        assert "internal tool" in await response.text()


async def test_it_is_made_once_however_many_ask(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.up("orders")
    async with served(dsn, http_status="all") as client:
        async with client.session.get("/status") as response:
            first = await response.text()
        await here.down("later")
        for _ in range(10):
            async with client.session.get("/status") as response:
                assert await response.text() == first


@pytest.mark.parametrize("value", ["public", "=true", "public=", "everything", ""])
def test_a_setting_that_says_nothing_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^setting http_status .*: .*public=true"):
        Settings.load(http_status=value)
