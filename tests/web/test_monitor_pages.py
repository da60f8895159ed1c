"""GET /monitors, one service, its history, and POST to have it polled now."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages.monitors import HIDDEN, HIDDEN_OF_DEPENDENCY, HIDDEN_OF_LINE
from tests.support.logins import Login, Logins
from tests.support.monitored_pages import Monitored, monitored, served
from tests.support.streams import BEARER, TOKEN, Pages
from tests.support.waiting import until_fetched

HOUR = """
INSERT INTO hybrid_monitors.hours (hour, dependency_id, answers, sum_ms, max_ms, buckets)
VALUES (
    date_trunc('hour', now()), $1, 100, 700, 90,
    ARRAY[0, 0, 50, 45, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
)
"""
ERROR = """
INSERT INTO hybrid_monitors.errors (at, service_id, dependency_id, error, message)
VALUES (now() - $3::int * interval '1 minute', $1, $2, $4::text::jsonb, $5)
"""


async def asked(client: Pages, path: str, method: str = "GET") -> tuple[int, Any]:
    """With the token."""
    async with client.session.request(method, path, headers=BEARER) as response:
        return response.status, await response.json()


async def some(database: Connection) -> Monitored:
    here = await monitored(database)
    await here.up("zebra", team="animals")
    await here.down("orders", team="payments")
    await here.add("newcomer", team="payments")
    await database.execute(
        "UPDATE hybrid_monitors.services SET active = false WHERE id = $1", await here.up("asleep")
    )
    await database.execute(
        "UPDATE hybrid_monitors.services SET quiet_until = now() + interval '1 h' WHERE id = $1",
        await here.down("mended"),
    )
    return here


async def test_the_list_begins_with_what_is_down_and_counts_all(
    dsn: str, database: Connection
) -> None:
    await some(database)
    async with served(dsn) as client:
        status, body = await client.get("/monitors")
    assert status == 200
    assert body["services"] == {"down": 1, "unknown": 1, "maintenance": 1, "up": 1, "paused": 1}
    assert [(one["name"], one["state"]) for one in body["listed"]] == [
        ("orders", "down"),
        ("newcomer", "unknown"),
        ("mended", "maintenance"),
        ("zebra", "up"),
        ("asleep", "paused"),
    ]
    assert body["more"] is False


async def test_a_list_that_is_cut_off_says_that_there_are_more(
    dsn: str, database: Connection
) -> None:
    await some(database)
    async with served(dsn) as client:
        for query, listed, more in (
            ("limit=4", 4, True),
            ("limit=5", 5, False),
            ("limit=2&offset=3", 2, False),
        ):
            _, body = await client.get(f"/monitors?{query}")
            assert (len(body["listed"]), body["more"]) == (listed, more)


@pytest.mark.parametrize("name", ["x" * 201, "a%00b", "%ED%A0%80", "%FF", "nobody"])
@pytest.mark.parametrize("rest", ["", "/history", "/poll"])
async def test_what_is_the_name_of_no_service_is_not_found(
    dsn: str, database: Connection, name: str, rest: str
) -> None:
    await monitored(database)
    async with served(dsn, http_token=TOKEN) as client:
        status, body = await asked(
            client, f"/monitors/{name}{rest}", "POST" if rest == "/poll" else "GET"
        )
    assert status == 404
    assert "there is no service" in body["error"]
    assert len(body["error"]) < 400


async def test_a_name_that_no_service_can_have_is_not_looked_for(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def installed(_: object) -> bool:
        return True

    async def look(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(monitor_view_calls, "has_monitors", installed)
    monkeypatch.setattr(monitor_view_calls, "show_service", look)
    async with served(dsn) as client:
        for path in ("/monitors/{}", "/monitors/{}/history", "/monitors/events?service={}"):
            assert (await client.get(path.format("x" * 201)))[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        b"/monitors/\xff",
        b"/monitors/\xff/history",
        b"/monitors/events?service=\xff",
        b"/monitors?text=\xff",
        b"/monitors?label=\xff=1",
    ],
    ids=repr,
)
async def test_bytes_that_are_no_text_are_refused(
    dsn: str, database: Connection, path: bytes
) -> None:
    """Sent as they are, as no browser would."""
    await monitored(database)
    async with served(dsn) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = await reader.readline()
        writer.close()
        await writer.wait_closed()
    assert said.split()[1] == b"400"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/monitors/x?limit=1", "there is no 'limit' here: ask without parameters"),
        ("/monitors/x/history?state=up", "here: there is dependency, hours, limit"),
        ("/monitors/x/history?hours=0", "hours: use a whole number 1 to 2160"),
        ("/monitors/x/history?dependency=%00", "dependency: at most 500 characters, and no NUL"),
        ("/monitors/events?limit=1", "here: there is kind, service, suppressed"),
        ("/monitors/events?suppressed=yes", "suppressed: use true or false"),
    ],
)
async def test_what_a_page_does_not_know_is_refused_in_one_line(
    dsn: str, database: Connection, path: str, reason: str
) -> None:
    await monitored(database)
    async with served(dsn) as client:
        status, body = await client.get(path)
    assert (status, reason in body["error"], "\n" in body["error"]) == (400, True, False)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=up", ["zebra"]),
        ("label=team=payments", ["orders", "newcomer"]),
        ("label=team=payments&state=down", ["orders"]),
        ("text=ORD", ["orders"]),
        ("text=%25", []),
        ("host=Secret.Example&limit=2", ["orders", "newcomer"]),
        ("limit=2&offset=3", ["zebra", "asleep"]),
        ("host=elsewhere.example", []),
    ],
)
async def test_what_is_listed_can_be_chosen(
    dsn: str, database: Connection, query: str, names: list[str]
) -> None:
    await some(database)
    async with served(dsn) as client:
        status, body = await client.get(f"/monitors?{query}")
    assert (status, [one["name"] for one in body["listed"]]) == (200, names)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("state=broken", "state: use one of down, unknown"),
        ("limit=0", "limit: use a whole number 1 to 1000"),
        ("limit=99999999999999999999", "limit: use a whole number"),
        ("offset=-1", "offset: use a whole number"),
        ("label=team", "label: write it as name=value"),
        ("text=%00", "text: at most 500 characters, and no NUL"),
        (f"host={'x' * 501}", "host: at most 500 characters, and no NUL"),
        ("colour=red", "there is no 'colour' here: there is host, label, limit, offset, state, te"),
    ],
)
async def test_what_cannot_be_asked_is_refused_in_one_line(
    dsn: str, database: Connection, query: str, reason: str
) -> None:
    await monitored(database)
    async with served(dsn) as client:
        status, body = await client.get(f"/monitors?{query}")
    assert status == 400
    assert reason in body["error"]
    assert "\n" not in body["error"]


async def test_addresses_and_what_answers_said_are_for_the_token_alone(
    dsn: str, database: Connection
) -> None:
    here = await some(database)
    orders = await database.fetchval(
        "SELECT id FROM hybrid_monitors.services WHERE name = 'orders'"
    )
    await here.depends(orders, "postgres", healthy=False)
    dependency = await here.depends(orders, "redis")
    await database.execute(
        ERROR, orders, dependency, 3, '{"at": "db.secret.example"}', "secret.example"
    )
    paths = ("/monitors?text=orders", "/monitors/orders", "/monitors/orders/history")
    async with served(dsn, http_token=TOKEN) as client:
        for path in paths:
            async with client.session.get(path) as response:
                assert response.status == 200
                text = await response.text()
            without_host = text.replace('"host":"secret.example"', "")
            assert "secret" not in without_host, path
            assert '"hidden":' in text
            status, body = await asked(client, path)
            assert status == 200
            assert "secret" in str(body)
            assert "hidden" not in body
        _, shown = await client.get("/monitors/orders")
        assert not {*HIDDEN, *HIDDEN_OF_LINE} & set(shown)
        assert all(not set(HIDDEN_OF_DEPENDENCY) & set(one) for one in shown["dependencies"])
        async with client.session.get(paths[0], headers={"Authorization": "Bearer x"}) as response:
            assert response.status in (401, 403)


async def test_one_service_is_shown_with_its_dependencies(dsn: str, database: Connection) -> None:
    here = await some(database)
    orders = await database.fetchval(
        "SELECT id FROM hybrid_monitors.services WHERE name = 'orders'"
    )
    await here.depends(orders, "redis")
    await here.depends(orders, "postgres", healthy=False)
    async with served(dsn, http_token=TOKEN) as client:
        status, body = await asked(client, "/monitors/orders")
        missing, why = await client.get("/monitors/nobody")
    assert status == 200
    assert (body["state"], body["failure"], body["failures"], body["every"]) == (
        "down",
        "http",
        3,
        30,
    )
    assert body["since"]
    assert body["due_at"]
    assert [(one["name"], one["healthy"]) for one in body["dependencies"]] == [
        ("postgres", False),
        ("redis", True),
    ]
    assert body["dependencies"][0]["error"] == {"code": "E1"}
    assert (missing, "there is no service 'nobody'" in why["error"]) == (404, True)


async def test_the_history_has_errors_newest_first_and_percentiles_by_hour(
    dsn: str, database: Connection
) -> None:
    here = await monitored(database)
    orders = await here.up("orders")
    redis = await here.depends(orders, "redis")
    await database.execute(ERROR, orders, redis, 9, '{"code": 1}', "it is broken")
    await database.execute(ERROR, orders, redis, 5, None, None)
    await database.execute(ERROR, orders, None, 7, '"timeout"', "no answer within 10s")
    await database.execute(HOUR, redis)
    async with served(dsn, http_token=TOKEN) as client:
        _, body = await asked(client, "/monitors/orders/history")
        _, one = await asked(client, "/monitors/orders/history?dependency=redis&hours=1")
        _, none = await asked(client, "/monitors/orders/history?dependency=other")
        bad, _ = await asked(client, "/monitors/orders/history?hours=9999")
    assert [(row["dependency"], row["recovered"], row["error"]) for row in body["errors"]] == [
        ("redis", True, None),
        (None, False, "timeout"),
        ("redis", False, {"code": 1}),
    ]
    [hour] = body["hours"]
    del hour["hour"]
    assert hour == {
        "dependency": "redis",
        "answers": 100,
        "mean_ms": 7.0,
        "max_ms": 90,
        "p50_ms": 5,
        "p95_ms": 10,
        "p99_ms": 20,
    }
    assert [row["recovered"] for row in one["errors"]] == [True, False]
    assert len(one["hours"]) == 1
    assert (none["errors"], none["hours"], bad) == ([], [], 400)


async def test_the_history_is_as_long_as_asked_for(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    orders = await here.up("orders")
    redis = await here.depends(orders, "redis")
    for minutes in (1, 2, 100, 1500):
        await database.execute(ERROR, orders, redis, minutes, '{"code": 1}', "it is broken")
    for hours in (2, 30):
        await database.execute(HOUR.replace("now()", f"now() - interval '{hours} h'"), redis)
    async with served(dsn) as client:
        for query, errors, lines in (
            ("", 3, 1),
            ("?hours=1", 2, 0),
            ("?hours=48", 4, 2),
            ("?hours=48&limit=1", 1, 1),
        ):
            _, body = await client.get(f"/monitors/orders/history{query}")
            assert (len(body["errors"]), len(body["hours"])) == (errors, lines), query


async def test_where_monitors_are_absent_one_look_is_enough_for_all_who_ask(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def look(_: object) -> bool:
        nonlocal looks
        looks += 1
        return False

    monkeypatch.setattr("hybrid_runner.web.pages.monitor_access._LOOK_AGAIN", 1000.0)
    monkeypatch.setattr(monitor_view_calls, "has_monitors", look)
    async with served(dsn, http_status="all") as client:
        for path in ("/monitors", "/monitors/x", "/status", "/monitors/events") * 3:
            assert (await client.get(path))[0] == 404
    assert looks == 1


async def test_a_poll_can_be_asked_for_with_the_token_once(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.up("orders")
    async with served(dsn, http_token=TOKEN) as client:
        refused, _ = await client.get("/monitors/orders/poll", "POST")
        first = await asked(client, "/monitors/orders/poll", "POST")
        again, why = await asked(client, "/monitors/orders/poll", "POST")
        missing, _ = await asked(client, "/monitors/nobody/poll", "POST")
    async with served(dsn) as client:
        closed, _ = await client.get("/monitors/orders/poll", "POST")
    assert (refused, closed, missing) == (401, 403, 404)
    assert (first[0], first[1]["outcome"]) == (202, "asked")
    assert again == 409
    assert "orders" in why["error"]
    assert "\n" not in why["error"]


@pytest.mark.parametrize(
    "path",
    ["/monitors", "/monitors/orders", "/monitors/orders/history", "/monitors/events", "/status"],
)
async def test_without_monitors_there_is_one_line(dsn: str, path: str) -> None:
    async with served(dsn, http_status="all") as client:
        for _ in range(3):
            status, body = await client.get(path)
            assert status == 404
            assert "run `hybrid-runner monitors migrate`" in body["error"]


async def test_monitors_that_are_installed_or_dropped_later_are_noticed(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid_runner.web.pages.monitor_access._LOOK_AGAIN", 0.0)
    async with served(dsn) as client:
        assert (await client.get("/monitors"))[0] == 404
        await monitored(database)
        assert (await client.get("/monitors"))[0] == 200
        await database.execute("DROP SCHEMA hybrid_monitors CASCADE")
        assert (await client.get("/monitors"))[0] in (404, 503)
        assert (await client.get("/monitors"))[0] == 404


async def test_pages_of_other_sites_read_and_change_nothing(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.up("a/b")
    site = {"Origin": "https://runs.example.org"}
    allowed = "Access-Control-Allow-Origin"
    settings = {"http_origins": site["Origin"], "http_token": TOKEN}
    async with served(dsn, **settings) as client:
        for path in ("/monitors", "/monitors/x", "/monitors/x/history", "/monitors/events"):
            async with client.session.get(path, headers=site) as response:
                assert response.headers.get(allowed) == site["Origin"], path
        async with client.session.post("/monitors/x/poll", headers=site | BEARER) as response:
            assert allowed not in response.headers
        async with client.session.get("/status", headers=site) as response:
            assert allowed not in response.headers


async def test_the_login_of_a_worker_is_enough_and_another_host_is_refused(
    dsn: str, database: Connection, login: Logins
) -> None:
    here = await monitored(database)
    await here.down("orders")
    settings = {"http_token": TOKEN, "http_status": "all"}
    async with served(login(Login.WORKER), **settings) as client:
        for path in ("/monitors", "/monitors/orders", "/monitors/orders/history"):
            assert (await client.get(path)).status == 200
        assert (await asked(client, "/monitors/orders/poll", "POST"))[0] == 202
        async with client.session.get("/status") as response:
            assert response.status == 200
        async with client.events("/monitors/events"):
            lit = "SELECT hybrid_monitors.events_are_read()"
            await until_fetched(database, lit, True)
        async with client.session.get("/status", headers={"Host": "evil.example"}) as response:
            assert response.status == 421
