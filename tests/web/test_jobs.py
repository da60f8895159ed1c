"""One job over HTTP: what anybody may see, what the token reveals, and what it may change (B13,
A5).
"""

from __future__ import annotations

import logging
from typing import cast

import pytest

from hybrid_runner import ConfigurationError, Runner
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.settings import Settings
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import fails
from tests.support.jobs import running
from tests.support.streams import BEARER, TOKEN, Pages, Stepwise, served
from tests.support.waiting import until_fetched

HIDDEN = ["payload", "data", "key", "enqueued_by", "waits_for", "result", "errors"]
HIDDEN += ["row_key", "table_name", "behind"]
COLUMNS = """
SELECT column_name::text FROM information_schema.columns
WHERE table_schema = 'hybrid_runner' AND table_name = 'all_jobs'
"""
INSERT = """
INSERT INTO hybrid_runner.jobs (kind, payload, timeout) VALUES ('brief', '{"secret": 7}', '90 s')
RETURNING id
"""
NEARLY = (TOKEN[:-1], TOKEN[:1], TOKEN + "x", TOKEN.upper(), TOKEN * 2)
STATE = "SELECT state::text FROM hybrid_runner.all_jobs WHERE id = $1"


async def ask(
    client: Pages, method: str, path: str, **options: object
) -> tuple[int, dict[str, object]]:
    async with client.session.request(method, path, **options) as response:  # type: ignore[arg-type]
        return response.status, await response.json()


async def columns(database: Connection) -> set[str]:
    return {row[0] for row in await database.fetch(COLUMNS)}


async def test_a_job_is_shown_with_every_column_but_what_it_carries(
    dsn: str, database: Connection
) -> None:
    """B13"""
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        status, shown = await ask(client, "GET", f"/jobs/{job}")
    assert (status, shown["id"], shown["state"], shown["timeout"], shown["version"]) == (
        200,
        job,
        "queued",
        90.0,
        1,
    )
    assert shown["hidden"] == HIDDEN
    assert set(shown) == await columns(database) - set(HIDDEN) | {"hidden"}


async def test_the_token_reveals_what_a_job_carries_and_what_it_came_to(
    dsn: str, database: Connection
) -> None:
    """B13"""
    async with served(Stepwise(dsn, http_token=TOKEN).app) as (client, worker):
        job = await database.fetchval(
            "SELECT hybrid_runner.enqueue('brief', '{\"secret\": 7}', queue => 'images')"
        )
        await worker.settled(1)
        status, shown = await ask(client, "GET", f"/jobs/{job}", headers=BEARER)
        assert await ask(client, "GET", f"/jobs/{job}") == (
            200,
            {k: v for k, v in shown.items() if k not in HIDDEN} | {"hidden": HIDDEN},
        )
    assert (status, shown["payload"], shown["result"], shown["state"]) == (
        200,
        {"secret": 7},
        1,
        "completed",
    )
    assert set(shown) == await columns(database) | {"table_name", "behind"}


async def test_a_job_says_behind_which_other_one_it_waits(dsn: str, database: Connection) -> None:
    holder = (await running(database, "k")).id
    job = (await client_calls.enqueue_job(database, NewJob("work", key="k"), "follow")).id
    async with served(Stepwise(dsn, http_token=TOKEN).app) as (client, _):
        for job_id, behind in ((job, holder), (holder, None)):
            _, shown = await ask(client, "GET", f"/jobs/{job_id}", headers=BEARER)
            assert shown["behind"] == behind


async def test_what_changes_a_job_needs_the_token(dsn: str, database: Connection) -> None:
    """B6 B13"""
    async with served(Stepwise(dsn, http_token=TOKEN).app) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        for way in ("cancel", "retry"):
            for said in (
                "",
                "Bearer another-token-of-mine",
                f"Basic {TOKEN}",
                "Bearer",
                "Bearer ",
                *map("Bearer {}".format, NEARLY),
            ):
                wrong = {"Authorization": said} if said else {}
                async with client.session.post(f"/jobs/{job}/{way}", headers=wrong) as response:
                    assert (response.status, response.headers["WWW-Authenticate"]) == (
                        401,
                        "Bearer",
                    )
        assert await database.fetchval(STATE, job) == "queued"
        path = f"/jobs/{job}/cancel"
        assert await ask(
            client, "POST", path, headers=BEARER, json={"reason": "no longer wanted"}
        ) == (
            200,
            {"id": job, "outcome": "cancelled"},
        )
        assert await ask(client, "POST", path, headers=BEARER) == (
            409,
            {"id": job, "outcome": "finished"},
        )
        _, shown = await ask(client, "GET", f"/jobs/{job}", headers=BEARER)
        assert shown["errors"][0]["message"] == "no longer wanted"  # type: ignore[index]
        assert await ask(client, "POST", f"/jobs/{job}/retry", headers=BEARER) == (
            200,
            {"id": job, "outcome": "queued"},
        )
        assert await database.fetchval(STATE, job) == "queued"


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_what_is_open_stays_so_for_whoever_proves_something_to_a_proxy(
    dsn: str, database: Connection, token: str | None
) -> None:
    """Other schemes than Bearer are none of ours; a Bearer token that is not ours reveals
    nothing.
    """
    async with served(Stepwise(dsn, http_token=token).app) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        for said in ("Basic dTpw", f"Basic {TOKEN}", "Negotiate", ""):
            status, shown = await ask(
                client, "GET", f"/jobs/{job}", headers={"Authorization": said}
            )
            assert (status, shown["hidden"]) == (200, HIDDEN)
        for nearly in NEARLY:
            status, shown = await ask(
                client, "GET", f"/jobs/{job}", headers={"Authorization": f"Bearer {nearly}"}
            )
            assert (status, "payload" in shown) == (401 if token else 403, False)


async def test_without_a_configured_token_nothing_is_revealed_and_nothing_changes(
    dsn: str, database: Connection
) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/retry")):
            status, said = await ask(client, method, f"/jobs/{job}{path}", headers=BEARER)
            assert status == 403
            assert "HYBRID_RUNNER_HTTP_TOKEN" in str(said["error"])
        status, said = await ask(client, "POST", f"/jobs/{job}/cancel")
        assert status == 403
        assert await database.fetchval(STATE, job) == "queued"


NOT_THERE = [
    "GET /jobs/99",
    "GET /jobs/99/events",
    "HEAD /jobs/99/events",
    "POST /jobs/99/cancel",
    "POST /jobs/99/retry",
    "GET /jobs/x",
    "GET /jobs/9223372036854775808",
    "GET /jobs/-1",
]
NOT_ALLOWED = ["POST /jobs/99", "GET /jobs/99/cancel", "DELETE /events", "POST /jobs/99/events"]
NOT_RIGHT = ["GET /events?queue=no%20queue", "GET /events?kind=", "GET /events?state=failed"]


async def test_what_is_not_there_or_not_right_is_json_with_one_line(dsn: str) -> None:
    """All are asked of one server, which none of them changes."""
    answers = {}
    async with served(Stepwise(dsn, http_token=TOKEN).app, deaf=True) as (client, _):
        for asked in (*NOT_THERE, *NOT_ALLOWED, *NOT_RIGHT):
            method, path = asked.split(" ")
            async with client.session.request(method, path, headers=BEARER) as response:
                lines = 1 if method == "HEAD" else 1 + (await response.json())["error"].count("\n")
                answers[asked] = (response.status, response.content_type, lines)
    expected = (
        dict.fromkeys(NOT_THERE, 404)
        | dict.fromkeys(NOT_ALLOWED, 405)
        | dict.fromkeys(NOT_RIGHT, 400)
    )
    assert answers == {asked: (status, "application/json", 1) for asked, status in expected.items()}


async def test_a_body_that_is_no_reason_is_refused(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn, http_token=TOKEN).app, deaf=True) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(INSERT)
        for body in ("[]", "{", '{"reason": 1}', '{"reason": "\\u0000"}'):
            status, said = await ask(
                client, "POST", f"/jobs/{job}/cancel", headers=BEARER, data=body
            )
            assert status == 400
            assert "reason" in str(said["error"])
        assert await database.fetchval(STATE, job) == "queued"


def test_the_token_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    app = Runner("postgresql://nobody@127.0.0.1:1/nothing", http_token=TOKEN)
    app.use(slots=3)
    token = app.settings.pages.http_token
    assert token is not None
    assert token.get_secret_value() == TOKEN
    assert (
        TOKEN
        not in repr(app.settings) + str(app.settings) + repr(app.page_database()) + caplog.text
    )


@pytest.mark.parametrize(
    "token", ["short", "x" * 513, "sixteen letters or", "line\nbreak-0123456789"]
)
def test_a_token_that_is_weak_or_cannot_be_sent_is_one_line_without_it(token: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings.load({"HYBRID_RUNNER_HTTP_TOKEN": token})
    assert "HYBRID_RUNNER_HTTP_TOKEN" in str(refused.value)
    assert token not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command_says_so_in_one_line_too() -> None:
    assert "http_token" in fails(
        "jobs", "list", "--dsn", "postgresql://x@127.0.0.1:1/x", HYBRID_RUNNER_HTTP_TOKEN="short"
    )


async def test_no_page_and_no_log_line_names_the_token(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with served(Stepwise(dsn, http_token=TOKEN).app) as (client, _):
            for path in ("/health", "/ready", "/jobs/1", "/nowhere"):
                async with client.session.get(path, headers=BEARER) as response:
                    assert TOKEN not in await response.text()
    assert TOKEN not in caplog.text


async def test_everybody_may_see_the_runs_after_which_a_job_was_put_back(
    dsn: str, database: Connection
) -> None:
    """B13: when and by whom; not what it waits for."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, worker):
        job = (await steps.app.enqueue("steps", {})).id
        steps.snooze("1h")
        await until_fetched(database, "SELECT sum(snoozes) FROM hybrid_runner.jobs", 1)
        await database.execute("UPDATE hybrid_runner.jobs SET waits_for = 'secret:7'")
        _, shown = await ask(client, "GET", f"/jobs/{job}")
    [run] = cast("list[dict[str, object]]", shown["history"])
    assert (run["what"], run["attempt"], run["worker"]) == ("snooze", 1, worker.id)
    assert set(run) == {"what", "attempt", "worker", "due", "started", "ended"}
    assert shown["began_at"] is not None
    assert "secret:7" not in str(shown)
