"""Signals over HTTP: by their key with the server's token, or by a job's callback without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from hybrid_runner import Job, Runner, Snooze
from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.waiting.callback_tokens import callback_token, secret_of_job
from hybrid_runner.web.pages import signals
from tests.support.streams import BEARER, TOKEN, Pages, served
from tests.support.waiting import until_fetched
from tests.support.working import runner

SENT = """
SELECT coalesce(jsonb_agg(jsonb_build_array(key, payload) ORDER BY id), '[]')::text
FROM hybrid_runner.signals
"""
WAITS = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for IS NOT NULL"


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]


async def post(client: Pages, path: str, body: bytes = b"", **headers: str) -> Answer:
    async with client.session.post(path, data=body, headers=headers) as response:
        assert response.content_type == "application/json"
        return Answer(response.status, await response.json())


async def sent(database: Connection) -> list[Any]:
    """Keys and payloads of all signals."""
    return list(json.loads(await database.fetchval(SENT)))


async def token_of(database: Connection, job: int, name: str = "approved") -> str:
    secret = await signal_calls.callback_secret(database)
    return callback_token(secret_of_job(secret, job), job, name)


def waiting(dsn: str, **settings: Any) -> Runner:
    """Jobs `order` wait to be approved, and return what they are told."""
    app = runner(dsn, **settings)

    @app.job("order")
    async def order(payload: dict[str, int], job: Job) -> Any:
        if job.snoozes == 0:
            return Snooze("1h", wake_on=f"approved:{job.id}")
        return {"told": job.signalled, "timed_out": job.timed_out}

    return app


@asynccontextmanager
async def ordered(
    dsn: str, database: Connection, **settings: Any
) -> AsyncIterator[tuple[Pages, Runner, int]]:
    """Pages, and a job that waits."""
    app = waiting(dsn, **settings)
    async with served(app) as (client, _):
        job = (await app.enqueue("order", {})).id
        await until_fetched(database, WAITS, 1)
        yield client, app, job


async def test_a_callback_wakes_its_job_without_a_login(dsn: str, database: Connection) -> None:
    """The URL is all that the other side needs; a foreign login does no harm."""
    async with ordered(dsn, database) as (client, app, job):
        path = f"/signals/{await token_of(database, job)}"
        answer = await post(client, path, b'{"by": "ada"}', Authorization="Bearer of-their-own")
        assert answer == (202, {"outcome": "sent"})
        assert await app.handle(job).wait("2m") == {"told": {"by": "ada"}, "timed_out": False}


async def test_a_callback_counts_once_however_often_it_is_sent(
    dsn: str, database: Connection
) -> None:
    """Also when all come together."""
    async with ordered(dsn, database) as (client, app, job):
        await app.pause("default")
        path = f"/signals/{await token_of(database, job)}"
        answers = await asyncio.gather(*(post(client, path, b"%d" % n) for n in range(8)))
        assert sorted(answer.status for answer in answers) == [200] * 7 + [202]
        assert [(await post(client, path)).body for _ in range(2)] == [{"outcome": "again"}] * 2
        [(key, payload)] = await sent(database)
        assert (key, payload) == (f"approved:{job}", [a.status for a in answers].index(202))
        await app.resume("default")
        assert (await app.handle(job).wait("2m"))["told"] == payload


async def test_a_callback_stays_used_when_its_signal_is_forgotten(
    dsn: str, database: Connection
) -> None:
    """What the job was given is remembered for longer than the signal."""
    async with ordered(dsn, database) as (client, app, job):
        path = f"/signals/{await token_of(database, job)}"
        await post(client, path)
        await app.handle(job).wait("2m")
        await database.execute("SELECT hybrid_runner.pause('default')")
        assert await app.retry(job) == "queued"
        await database.execute("DELETE FROM hybrid_runner.signals")
        assert await post(client, path) == (200, {"outcome": "again"})
        assert await sent(database) == []


async def test_a_callback_of_a_job_that_has_ended_or_never_was_is_404_and_changes_nothing(
    dsn: str, database: Connection
) -> None:
    async with ordered(dsn, database) as (client, app, job):
        path = f"/signals/{await token_of(database, job)}"
        assert await app.cancel(job) == "cancelled"
        await app.enqueue("order", {}, delay="1h")
        for each in (path, f"/signals/{await token_of(database, 999)}"):
            status, body = await post(client, each, b"1")
            assert (status, "has ended, or is forgotten" in body["error"]) == (404, True)
        assert await sent(database) == []


async def test_a_wrong_token_is_401_and_changes_nothing(dsn: str, database: Connection) -> None:
    async with ordered(dsn, database) as (client, _, job):
        right = await token_of(database, job)
        secret = await signal_calls.callback_secret(database)
        wrong = [
            right[:-1] + ("A" if right[-1] != "A" else "B"),
            right[:-2],
            callback_token(secret_of_job(b"guessed" * 5, job), job, "approved"),
            callback_token(secret_of_job(secret, job + 1), job, "approved"),
        ]
        for token in wrong:
            status, body = await post(client, f"/signals/{token}", b"1")
            assert status in (401, 403), token
            assert "\n" not in body["error"]
        assert await sent(database) == []
        async with client.session.get(f"/signals/{right}") as response:  # somebody looks at a link
            assert response.status == 405
        assert await sent(database) == []


async def test_a_key_needs_the_servers_token(dsn: str, database: Connection) -> None:
    async with ordered(dsn, database, http_token=TOKEN) as (client, app, job):
        path = f"/signals/approved:{job}"
        assert (await post(client, path, b"1")).status == 401
        assert (
            await post(client, path, b"1", Authorization="Bearer not-the-token-here")
        ).status == 401
        assert await sent(database) == []
        status, body = await post(client, path, b'{"by": "bob"}', **BEARER)
        assert (status, body["key"], body["outcome"]) == (202, f"approved:{job}", "sent")
        assert (await app.handle(job).wait("2m"))["told"] == {"by": "bob"}


async def test_without_a_token_in_the_settings_no_key_is_signalled(
    dsn: str, database: Connection
) -> None:
    async with served(waiting(dsn)) as (client, _):
        for headers in ({}, BEARER):
            assert (await post(client, "/signals/approved:1", b"1", **headers)).status == 403
        assert await sent(database) == []


async def test_a_key_may_be_any_text_and_a_payload_any_json(dsn: str, database: Connection) -> None:
    """Whoever has the token may say it anyway."""
    async with served(waiting(dsn, http_token=TOKEN)) as (client, _):
        token = await token_of(database, 7)
        for path, key in (("a%2Fb%20c", "a/b c"), ("%C3%A9", "é"), (token, token)):
            assert (await post(client, f"/signals/{path}", b"", **BEARER)).status == 202
            assert (await sent(database))[-1] == [key, None]
        for body in (b'[1, {"a": null}]', b'"x"', b" 7 ", b"false"):
            assert (await post(client, "/signals/k", body, **BEARER)).status == 202
            assert (await sent(database))[-1] == ["k", json.loads(body)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"by=ada", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'"\\u0000"', 400),
        (b'"\\ud800"', 400),
        (b"[" * 5000 + b"]" * 5000, 400),
        (b"1e999999", 400),
        (b'"' + b"x" * 70_000 + b'"', 413),
    ],
)
async def test_what_is_no_payload_is_refused_in_one_line(
    body: bytes, status: int, dsn: str, database: Connection
) -> None:
    async with served(waiting(dsn, http_token=TOKEN), deaf=True) as (client, _):
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval("SELECT hybrid_runner.enqueue('order')")
        for path, headers in (
            (f"/signals/{await token_of(database, job)}", {}),
            ("/signals/approved:1", BEARER),
        ):
            answer = await post(client, path, body, **headers)
            assert answer.status == status
            assert "\n" not in answer.body["error"]
        assert await sent(database) == []


async def test_a_key_that_cannot_be_is_refused(dsn: str, database: Connection) -> None:
    async with served(waiting(dsn, http_token=TOKEN), deaf=True) as (client, _):
        for key in ("%00", "x" * 513, "%ED%A0%80"):
            assert (await post(client, f"/signals/{key}", b"1", **BEARER)).status in (202, 400), key
        assert all("\x00" not in key and len(key) <= 512 for key, _ in await sent(database))


async def test_a_new_secret_ends_the_callbacks_that_are_under_way(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages notice by the first callback that they do not know; seldom, since anybody can send
    wrong ones.
    """
    monkeypatch.setattr(signals, "LARGEST_SECRET_AGE", 0.0)
    async with ordered(dsn, database) as (client, app, job):
        old = await token_of(database, job)
        assert (
            await post(client, f"/signals/{await token_of(database, job, 'seen')}")
        ).status == 202
        await database.execute("UPDATE hybrid_runner.callback_secret SET secret = DEFAULT")
        new = await token_of(database, job)
        assert new != old
        assert (await post(client, f"/signals/{new}")).status == 202
        assert (await post(client, f"/signals/{old}")).status == 401
        await app.handle(job).wait("2m")


async def test_a_key_that_somebody_holds_holds_up_no_page(dsn: str, database: Connection) -> None:
    """A transaction that has sent the same and stays open: the callback is tried again later."""
    async with ordered(dsn, database) as (client, app, job):
        other = await connect(dsn)
        try:
            transaction = other.transaction()
            await transaction.start()
            await other.fetchval("SELECT hybrid_runner.signal($1, '1', true)", f"approved:{job}")
            path = f"/signals/{await token_of(database, job)}"
            held = asyncio.create_task(post(client, path, b"2"))
            assert (await client.get("/health")).status == 200
            assert (await held).status == 503
            await transaction.rollback()
            assert (await post(client, path, b"2")).status == 202
        finally:
            await other.close()
        assert (await app.handle(job).wait("2m"))["told"] == 2
