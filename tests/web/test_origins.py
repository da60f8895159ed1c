"""Pages of other sites read streams and jobs here in a browser, if a setting names them (B13)."""

from __future__ import annotations

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.origins import Origins
from tests.support.streams import BEARER, TOKEN, Pages, Stepwise, served

SITE = "https://runs.example.org"
INSERT = "INSERT INTO hybrid_runner.jobs (kind, queue) VALUES ('brief', 'nobody') RETURNING id"
ASKS = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}


async def shown_to(client: Pages, origin: str | None, path: str, method: str = "GET") -> str | None:
    """Whom the browser may show the answer to."""
    headers = {} if origin is None else {"Origin": origin}
    async with client.session.request(method, path, headers=headers) as response:
        assert response.status != 500
        return response.headers.get("Access-Control-Allow-Origin")


@pytest.mark.parametrize(
    ("names", "origin", "allowed"),
    [
        (None, SITE, False),
        (SITE, None, False),
        (SITE, SITE, True),
        (f"https://a.example, {SITE}", SITE, True),
        (f"{SITE}:443", SITE, True),
        ("HTTPS://Runs.Example.Org", SITE, True),
        ("http://localhost:5173", "http://localhost:5173", True),
        ("http://localhost:80", "http://localhost", True),
        ("http://[::1]:5173", "http://[::1]:5173", True),
        (SITE, "http://runs.example.org", False),
        (SITE, f"{SITE}:8443", False),
        (SITE, f"{SITE}.evil.example", False),
        (SITE, "https://evil.example", False),
        (SITE, "null", False),
        (SITE, "", False),
    ],
)
def test_an_origin_counts_whole(names: str | None, origin: str | None, allowed: bool) -> None:
    """B13."""
    assert Origins(names).allows(origin) is allowed


@pytest.mark.parametrize(
    "origins",
    ["*", "null", "runs.example.org", f"{SITE}/", f"{SITE},,", "https://*.example.org", "ftp://a"],
)
def test_what_is_no_origin_is_refused_in_one_line(origins: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^setting http_origins .*: .* is no origin: write https://"
    ):
        Settings.load({"HYBRID_RUNNER_HTTP_ORIGINS": origins})


async def test_pages_of_named_sites_read_jobs_and_their_events(
    dsn: str, database: Connection
) -> None:
    """B13: also an answer that says there is no such job, so that the page can tell why."""
    async with served(Stepwise(dsn, http_origins=SITE).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        for path in (f"/jobs/{job}", f"/jobs/{job}/events", "/events", "/jobs/99", "/jobs/x"):
            assert await shown_to(client, SITE, path) == SITE, path
            assert await shown_to(client, "https://evil.example", path) is None, path
            assert await shown_to(client, None, path) is None, path
        async with client.session.get(f"/jobs/{job}", headers={"Origin": SITE}) as response:
            assert response.headers["Vary"] == "Origin"
            assert "Access-Control-Allow-Credentials" not in response.headers
            assert "payload" not in await response.json()


async def test_what_changes_jobs_and_what_is_about_the_worker_is_for_no_other_site(
    dsn: str, database: Connection
) -> None:
    settings = {"http_origins": SITE, "http_token": TOKEN}
    async with served(Stepwise(dsn, **settings).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        for method, path in (
            ("GET", "/health"),
            ("GET", "/metrics"),
            ("GET", "/scale"),
            ("POST", f"/jobs/{job}/cancel"),
            ("POST", f"/jobs/{job}/retry"),
        ):
            assert await shown_to(client, SITE, path, method) is None, path
            async with client.session.options(path, headers={"Origin": SITE} | ASKS) as response:
                assert response.status == 405
                assert "Access-Control-Allow-Origin" not in response.headers


async def test_a_page_of_a_named_site_may_send_the_token(dsn: str, database: Connection) -> None:
    """The browser asks before it does."""
    settings = {"http_origins": SITE, "http_token": TOKEN}
    async with served(Stepwise(dsn, **settings).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        path = f"/jobs/{job}"
        async with client.session.options(path, headers={"Origin": SITE} | ASKS) as response:
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Origin"] == SITE
            assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        async with client.session.get(path, headers={"Origin": SITE} | BEARER) as response:
            assert response.headers["Access-Control-Allow-Origin"] == SITE
            assert "payload" in await response.json()
        evil = {"Origin": "https://evil.example"}
        async with client.session.options(path, headers=evil | ASKS) as response:
            assert response.status == 405


async def test_without_the_setting_no_other_site_reads(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app, deaf=True) as (client, _):
        job = await database.fetchval(INSERT)
        async with client.session.get(f"/jobs/{job}", headers={"Origin": SITE}) as response:
            assert response.status == 200
            assert not {"Vary", "Access-Control-Allow-Origin"} & set(response.headers)
