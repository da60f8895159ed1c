"""hybrid-runner monitors, as a real process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import (
    COMMAND,
    NOBODY,
    ROOT,
    environment,
    fails,
    hybrid_runner,
    succeeds,
)
from tests.support.logins import Login, Logins
from tests.support.monitored_pages import Monitored, monitored
from tests.support.proxy import Proxy
from tests.support.waiting import until_fetched

HEALTH = [
    {"name": "postgres", "healthy": True, "latency": 3},
    {"name": "redis", "healthy": False, "errorMessage": "refused \x1b[31m"},
]
pytestmark = pytest.mark.timeout(150)
NAMES = "SELECT name FROM hybrid_monitors.services ORDER BY name"


class _Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(HEALTH if self.path == "/health" else {"parts": {"db": {"status": "UP"}}})
        self.send_response(503 if self.path == "/broken" else 200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002  # it is called so
        pass


@pytest.fixture
def service() -> Iterator[str]:
    """A service on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def run(dsn: str, *arguments: str, **more: Any) -> str:
    return await asyncio.to_thread(succeeds, "monitors", *arguments, HYBRID_RUNNER_DSN=dsn, **more)


async def refused(dsn: str, *arguments: str, code: int = 1, **more: Any) -> str:
    return await asyncio.to_thread(
        fails, "monitors", *arguments, code=code, HYBRID_RUNNER_DSN=dsn, **more
    )


async def test_monitors_are_installed_once_and_then_found(dsn: str) -> None:
    assert await run(dsn, "migrate", "--log-level", "error") == (
        "applied 0001 baseline\nmonitors are now at version 1\n"
    )
    again = json.loads(await run(dsn, "migrate", "--json"))
    assert again == {"version": 1, "applied": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", "orders"],
        ["add", "orders", "http://orders"],
        ["pause", "orders"],
        ["quiet", "orders", "1h"],
        ["poll", "orders"],
        ["events"],
        ["import", "-"],
    ],
    ids=lambda arguments: arguments[0],
)
async def test_without_the_schema_each_says_how_to_make_it(dsn: str, arguments: list[str]) -> None:
    line = await refused(dsn, *arguments, stdin='{"name": "a", "url": "http://a"}')
    assert "run `hybrid-runner monitors migrate`" in line


async def test_a_service_is_added_shown_changed_and_removed(dsn: str, database: Connection) -> None:
    await monitored(database)
    said = await run(
        dsn,
        *("add", "orders", "https://orders.example/health", "--every", "1m", "--timeout", "5"),
        *("--header", "Authorization: Bearer {orders}", "--label", "team=payments"),
        *("--fail-after", "3", "--format", "status"),
    )
    assert said == "service 'orders' is monitored every 60 s\n"
    shown = json.loads(await run(dsn, "show", "orders", "--json"))
    assert (shown["state"], shown["every"], shown["timeout"], shown["fail_after"]) == (
        *("unknown", 60, 5, 3),
    )
    assert (shown["headers"], shown["labels"]) == (
        {"Authorization": "Bearer {orders}"},
        {"team": "payments"},
    )
    assert "url" in await run(dsn, "show", "orders")


async def test_a_service_is_paused_resumed_and_removed(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.up("orders")
    assert await run(dsn, "pause", "orders") == "service 'orders' is paused\n"
    assert json.loads(await run(dsn, "list", "--json"))["services"]["paused"] == 1
    assert await run(dsn, "resume", "orders") == "service 'orders' is polled again\n"
    again = json.loads(await run(dsn, "pause", "orders", "orders", "--json"))
    assert again == [{"name": "orders", "outcome": "paused"}]
    removed = json.loads(await run(dsn, "remove", "orders", "--json"))
    assert removed == [{"name": "orders", "outcome": "removed"}]
    assert "no services" in await run(dsn, "list")


async def test_a_service_is_quiet_for_a_while(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    await here.down("orders")
    assert await run(dsn, "quiet", "orders", "2h") == "service 'orders' is quiet for 2 h\n"
    assert json.loads(await run(dsn, "show", "orders", "--json"))["state"] == "maintenance"
    assert await run(dsn, "quiet", "orders", "0") == "service 'orders' is told of again\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "a", "ftp://a"], "url"),
        (["add", "a", "http://user:word@a"], "url"),
        (["add", "a", "http://a", "--every", "1s"], "every"),
        (["add", "a", "http://a", "--depends-on", "nobody"], "nobody"),
        (["add", "taken", "http://a"], "another service is called 'taken'"),
        (["show", "nobody"], "there is no service 'nobody'"),
        (["quiet", "nobody", "1h"], "there is no service called 'nobody'"),
        (["remove", "taken", "nobody"], "there is no service called 'nobody'"),
        (["poll", "nobody"], "nobody"),
        (["events", "--service", "nobody"], "there is no service 'nobody'"),
        (["quiet", "taken", "400d"], "a service is quiet for a year at most: pause it instead"),
        (["import", "/nowhere/file"], "/nowhere/file: No such file"),
        (["import", "/"], "/: Is a directory"),
        (["import", "/dev/zero"], "the file is larger than 64 MiB: split it"),
    ],
)
async def test_what_is_refused_is_said_in_one_line(
    dsn: str, database: Connection, arguments: list[str], said: str
) -> None:
    here = await monitored(database)
    await here.up("taken")
    assert said in await refused(dsn, *arguments)
    assert [row["name"] for row in await database.fetch(NAMES)] == ["taken"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "a"], "URL"),
        (["add", "", "http://a"], "the name of a service has 1 to 200 characters"),
        (["add", "a", "http://a", "--header", "nonsense"], "is no header"),
        (["add", "a", "http://a", "--label", "nonsense"], "is no label"),
        (["add", "a", "http://a", "--mapping", "/nowhere"], "/nowhere: No such file"),
        (["add", "a", "http://a", "--mapping", "/dev/zero"], "/dev/zero is larger than 64 KiB"),
        (["add", "x" * 201, "http://a"], "the name of a service has 1 to 200 characters"),
        (["add", "a", "http://a", "--header", ": b"], "': b' is no header"),
        (["list", "--label", "=b"], "'=b' is no label"),
        (["add", "a", "http://a", "--label", "a=b", "--label", "a=c"], "'a' is given twice"),
        (["add", "a", "http://a", "--header", "a: b", "--header", "a: c"], "'a' is given twice"),
        (["list", "--state", "bad"], "there is no 'bad'"),
        (["events", "--kind", "bad"], "there is no 'bad'"),
        (["quiet", "a", "soon"], "is not a duration"),
        ([], "name a command"),
        (["mirgate"], "did you mean 'migrate'?"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], said: str) -> None:
    assert said in fails("monitors", *arguments, code=2, HYBRID_RUNNER_DSN=NOBODY)


async def test_the_list_shows_at_a_glance_what_is_down_since_when_and_why(
    dsn: str, database: Connection
) -> None:
    here = await monitored(database)
    await here.up("zebra")
    orders = await here.down("orders", "timeout")
    await database.execute(
        "UPDATE hybrid_monitors.standings SET error = error || $1 WHERE NOT ok", "\n\x1b[2J"
    )
    await here.depends(orders, "redis", healthy=False)
    text = await run(dsn, "list")
    head, first, *_, last = text.splitlines()
    assert head.split() == [
        *("ID", "STATE", "SERVICE", "SINCE", "BREAKER", "NEXT", "POLL", "DEPENDENCIES", "WHY"),
    ]
    for said in ("down", "42 min ago", "open", "in ", "1, 1 unhealthy", "timeout: http://secret"):
        assert said in first
    assert "(3 failed polls)" in first
    assert "\x1b" not in text
    assert last == "1 down, 1 up"
    assert "zebra" not in await run(dsn, "list", "--state", "down")
    cut = (await run(dsn, "list", "--limit", "1")).splitlines()[1:]
    assert ("orders" in cut[0], cut[1:]) == (
        True,
        ["1 down, 1 up; not all are listed: see --limit and --state"],
    )
    assert json.loads(await run(dsn, "list", "--limit", "1", "--json"))["more"] is True
    assert json.loads(await run(dsn, "list", "--limit", "2", "--json"))["more"] is False
    assert await run(dsn, "list", "--text", "nothing") == "no such services\n"


def test_a_file_that_is_no_object_in_utf8_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mapping.json"
    for body, said in (
        (b"[1]", "holds no JSON object"),
        (b"\xff", "is no text in UTF-8"),
        (b"{", "is not JSON: "),
        (b"9" * 5000, "has a number with too many digits: write it as a text"),
    ):
        file.write_bytes(body)
        line = fails("monitors", "test", "http://a", "--expect", str(file), code=2)
        assert f"{file} {said}" in line


async def test_a_file_is_stored_as_a_whole_or_not_at_all(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    await monitored(database)
    file = tmp_path / "services.jsonl"
    lines = [
        {"name": "shop", "url": "http://shop.example", "depends_on": "orders"},
        {"name": "orders", "url": "http://orders.example", "every": "1m", "labels": {"a": 1}},
    ]
    bad = [*lines, {"name": "bad", "url": "gopher://bad"}]
    file.write_text("\n".join(map(json.dumps, bad)))
    line = await refused(dsn, "import", str(file))
    assert line.startswith("line 3: ")
    assert "url" in line
    assert await database.fetch(NAMES) == []
    file.write_text(json.dumps(lines, indent=1))
    assert await run(dsn, "import", str(file)) == "2 services added\n"
    shop = json.loads(await run(dsn, "show", "shop", "--json"))
    assert shop["depends_on"] == "orders"
    assert "line 2: name: there is a service 'shop' already" in await refused(
        dsn, "import", str(file)
    )
    change = (
        '{"name": "orders", "url": "http://orders.example/health"}\n{"name":"new","url":"http://n"}'
    )
    assert await run(dsn, "import", "-", "--update", stdin=change) == (
        "1 service added, 1 service updated\n"
    )
    orders = json.loads(await run(dsn, "show", "orders", "--json"))
    assert (orders["url"], orders["every"]) == ("http://orders.example/health", 60)


async def test_ten_thousand_services_are_imported_and_the_bad_one_is_found(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    await monitored(database)
    services = [
        {"name": f"service {n}", "url": f"https://host{n % 50}.example/health"}
        for n in range(10_000)
    ]
    file = tmp_path / "services.jsonl"
    bad = [*services[:7776], services[7776] | {"timeout": "1h"}, *services[7777:]]
    file.write_text("\n".join(map(json.dumps, bad)))
    line = await refused(dsn, "import", str(file))
    assert line.startswith("line 7777: services.timeout ")
    assert await database.fetchval("SELECT count(*) FROM hybrid_monitors.services") == 0
    file.write_text("\n".join(map(json.dumps, services)))
    assert await run(dsn, "import", str(file)) == "10,000 services added\n"
    jobs = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'monitors.open'"
    assert await database.fetchval(jobs) <= 2
    assert await run(dsn, "import", str(file), "--update") == (
        "0 services added, 10,000 services updated\n"
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [{"name": "a", "url": "http://a"}, {"name": "b", "url": "http://b", "depends_on": "x"}],
            "line 2: depends_on: there is no service 'x'",
        ),
        (
            [
                {"name": "a", "url": "http://a", "depends_on": "b"},
                {"name": "b", "url": "http://b", "depends_on": "a"},
            ],
            "depends_on",
        ),
        ([{"name": "a\n", "url": "http://a"}], "line 1: services.name "),
        ([{"name": "a", "url": "http://a", "mapping": {}}], "line 1: mapping.fields is missing"),
        ([{"name": "a", "url": "http://169.254.169.254\u0000"}], "NUL"),
    ],
)
async def test_what_cannot_be_imported_names_its_line_and_field(
    dsn: str, database: Connection, lines: list[dict[str, Any]], said: str
) -> None:
    await monitored(database)
    line = await refused(dsn, "import", "-", stdin="\n".join(map(json.dumps, lines)))
    assert said in line
    assert await database.fetch(NAMES) == []


async def test_a_url_is_tried_without_a_database(service: str, tmp_path: Path) -> None:
    text = await run(NOBODY, "test", f"{service}/health")
    assert "2 dependencies, 1 unhealthy" in text
    assert "postgres" in text
    assert "\x1b" not in text
    mapping = tmp_path / "mapping.json"
    mapping.write_text(
        json.dumps(
            {
                "root": "parts",
                "fields": {"name": "$key", "healthy": {"field": "status", "equals": "up"}},
            }
        )
    )
    found = json.loads(
        await run(NOBODY, "test", f"{service}/odd", "--mapping", str(mapping), "--json")
    )
    assert [(item["name"], item["healthy"]) for item in found["items"]] == [("db", True)]
    assert "http: it answered 503" in await refused(NOBODY, "test", f"{service}/broken")
    bad = await asyncio.to_thread(
        hybrid_runner, "monitors", "test", f"{service}/broken", "--json", HYBRID_RUNNER_DSN=NOBODY
    )
    assert (bad.returncode, json.loads(bad.stdout)["failure"], bad.stderr) == (1, "http", "")
    mapping.write_text('{"status": [404]}')
    assert "expect" in await refused(NOBODY, "test", f"{service}/health", "--expect", str(mapping))
    assert "address" in await refused(NOBODY, "test", "http://169.254.169.254/latest")


async def test_a_poll_is_asked_for_and_waited_for(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    orders = await here.up("orders")
    waits = asyncio.create_task(run(dsn, "poll", "orders"))
    asked = "SELECT count(*) FROM hybrid_monitors.asked"
    await until_fetched(database, asked, 1)
    assert "orders" in await refused(dsn, "poll", "orders")
    await database.execute("DELETE FROM hybrid_monitors.asked")
    assert await waits == "service 'orders' has answered in 43 ms\n"
    line = await refused(dsn, "poll", "orders", "--wait-timeout", "100ms")
    assert "nobody has polled 'orders' within 100 ms" in line
    await database.execute("DELETE FROM hybrid_monitors.asked")
    await database.execute(
        "UPDATE hybrid_monitors.standings SET ok = false, failure = 'dns', error = 'no such name'"
        " WHERE service_id = $1",
        orders,
    )
    waits = asyncio.create_task(refused(dsn, "poll", "orders"))
    await until_fetched(database, asked, 1)
    await database.execute("DELETE FROM hybrid_monitors.asked")
    assert await waits == "the poll of 'orders' has failed: dns: no such name"
    failed = asyncio.create_task(
        asyncio.to_thread(
            hybrid_runner, "monitors", "poll", "orders", "--json", HYBRID_RUNNER_DSN=dsn
        )
    )
    await until_fetched(database, asked, 1)
    await database.execute("DELETE FROM hybrid_monitors.asked")
    ended = await failed
    assert (ended.returncode, json.loads(ended.stdout)["standing"]["failure"]) == (1, "dns")
    waits = asyncio.create_task(refused(dsn, "poll", "orders"))
    await until_fetched(database, asked, 1)
    await database.execute("DELETE FROM hybrid_monitors.services WHERE id = $1", orders)
    assert await waits == "service 'orders' was removed meanwhile"


async def some_events(here: Monitored) -> tuple[int, int]:
    orders = await here.up("orders")
    await here.event("service:down", orders, {"error": "answered\n503 \x1b[2J"})
    await here.event("status:change", 99, {"serviceName": "x", "currentHealthy": False})
    await here.event("service:down", orders, suppressed="maintenance")
    return orders, await here.event("service:up", orders)


async def test_events_of_the_past_are_chosen(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    _, last = await some_events(here)
    text = await run(dsn, "events")
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert "orders: answered 503" in text
    assert len((await run(dsn, "events", "--suppressed")).splitlines()) == 4
    chosen = await run(
        dsn, "events", "--service", "orders", "--kind", "service:up", "--json", "--limit", "1"
    )
    assert json.loads(chosen)["id"] == last
    assert await run(dsn, "events", "--after", str(last)) == ""
    assert len((await run(dsn, "events", "--after", "1", "--limit", "1")).splitlines()) == 1


async def test_following_events_outlasts_an_outage(dsn: str, database: Connection) -> None:
    here = await monitored(database)
    _, last = await some_events(here)
    async with Proxy(dsn) as proxy:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *("monitors", "events", "--follow", "--json", "--limit", "1"),
            cwd=ROOT,
            env=environment(HYBRID_RUNNER_DSN=proxy.dsn),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert json.loads(await process.stdout.readline())["id"] == last
            first = await here.event("service:down", 1)
            assert json.loads(await process.stdout.readline())["id"] == first
            await proxy.cut()
            assert b"going on once it answers" in await process.stderr.readline()
            await proxy.mend()
            second = await here.event("service:up", 1)
            assert json.loads(await process.stdout.readline())["id"] == second
        finally:
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130


def test_the_command_is_quick_to_load() -> None:
    """Nothing that polls is imported to list services."""
    code = "import sys, hybrid_runner.cli.commands.monitors; print('aiohttp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("who", [Login.WORKER, Login.READER])
async def test_whoever_may_read_sees_services_and_events(
    dsn: str, database: Connection, login: Logins, who: Login
) -> None:
    here = await monitored(database)
    await some_events(here)
    assert "orders" in await run(login(who), "list")
    assert "service:up" in await run(login(who), "events")


async def test_a_login_that_may_not_look_is_told_so(
    dsn: str, database: Connection, login: Logins
) -> None:
    await monitored(database)
    line = await refused(login(Login.NOBODY), "list")
    assert "permission denied" in line
