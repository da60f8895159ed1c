"""Streams of events about real jobs of a real worker on a real Postgres (B13)."""

from __future__ import annotations

import asyncio
import socket
from datetime import datetime, timedelta

import pytest

from hybrid_runner.model import messages
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.stream import changes, events, job_stream, reader
from hybrid_runner.worker.report import change_feed
from tests.support import inside
from tests.support.rings import listening
from tests.support.streams import Stepwise, changes_channel, served, status_of
from tests.support.waiting import equals, until, until_fetched

INSERT = "INSERT INTO hybrid_runner.jobs (kind, queue) VALUES ($1, $2) RETURNING id"
OF_THE_STREAM = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name
    IN ('hybrid-runner stream', 'hybrid-runner pages', 'hybrid-runner listener')
"""
READERS = "SELECT hybrid_runner.readers_left_ms()"
REPLACE = (
    "SELECT hybrid_runner.enqueue('brief', queue => 'images', key => 'k', priority => $1,"
    " on_conflict => 'replace')"
)
PAUSED = "SELECT hybrid_runner.pause('default'), hybrid_runner.pause('images')"


@pytest.fixture
def published_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round that reads by itself what nobody has published."""
    monkeypatch.setattr(job_stream, "RECHECK", 1000.0)
    monkeypatch.setattr(job_stream, "POLL", 1000.0)
    monkeypatch.setattr(changes, "SPREADING", 0.0)
    monkeypatch.setattr(changes, "LEASE", timedelta(seconds=50))  # a machine may stand still


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers never hear that somebody reads."""
    monkeypatch.setattr(change_feed.ChangeFeed, "has_readers", False)


async def test_the_stored_state_comes_at_once_then_each_change_until_the_end(
    dsn: str, database: Connection
) -> None:
    """B13: and the stream ends by itself."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, _):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            first = await seen.next()
            assert (first.name, first.id, first.data["state"], first.data["version"]) == (
                "queued",
                "1",
                "queued",
                1,
            )
            assert not {"payload", "data", "result", "errors"} & set(first.data)
            await steps.app.resume("default")
            assert (await seen.next()).name == "running"
            steps.progress(0.5)
            progress = await seen.next()
            assert (progress.name, progress.data["progress"]["fraction"]) == ("progress", 0.5)
            steps.snooze("1h")
            snoozed = await seen.next()
            assert (snoozed.name, snoozed.data["attempt"], snoozed.data["snoozes"]) == (
                "snoozed",
                0,
                1,
            )
            assert datetime.fromisoformat(snoozed.data["run_at"]) > datetime.fromisoformat(
                snoozed.data["created_at"]
            ) + timedelta(milliseconds=300)
            assert await database.fetchval("SELECT hybrid_runner.retry($1)", job) == "queued"
            await seen.until("running")
            steps.retry("1h")
            retried = await seen.next()
            assert (retried.name, retried.data["attempt"]) == ("retried", 1)
            assert await database.fetchval("SELECT hybrid_runner.retry($1)", job) == "queued"
            await seen.until("running")
            steps.say(1)
            last = await seen.next()
            assert (last.name, last.data["state"]) == ("completed", "completed")
            assert await seen.rest() == []
            assert seen.hint == "retry: 2000"
        stored = await steps.app.get(job)
    assert stored is not None
    assert str(stored.version) == last.id


@pytest.mark.usefixtures("published_only")
async def test_what_a_worker_does_is_told_by_it(dsn: str, database: Connection) -> None:
    """B13: claims, progress, requeues and ends; no polling would see them here."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, worker):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            await seen.next()
            await until(lambda: inside.knows_of_readers(worker))
            await steps.app.resume("default")
            await seen.until("running")
            for fraction in (0.1, 0.2):
                steps.progress(fraction)
                assert (await seen.until("progress")).data["progress"]["fraction"] == fraction
            steps.retry("1ms")
            await seen.until("running")
            steps.say(None)
            await seen.until("completed")


@pytest.mark.usefixtures("published_only")
async def test_what_sql_functions_change_is_published_by_them(
    dsn: str, database: Connection
) -> None:
    """A5 B6 B13: amend, replace, retry and cancel, from psql or anywhere; two of them, so that no
    round can come in between.
    """
    async with served(Stepwise(dsn).app, queues={"default": 1}) as (client, _):
        await database.execute(PAUSED)
        job = await database.fetchval(
            "SELECT hybrid_runner.enqueue('brief', queue => 'images', key => 'k')"
        )
        async with client.events(f"/jobs/{job}/events") as seen:
            assert (await seen.next()).data["priority"] == 5
            await until_fetched(database, f"{READERS} > 0", value=True)
            for version in (1, 2):
                assert (
                    await database.fetchval(
                        "SELECT hybrid_runner.amend($1, $2, priority => $2)", job, version
                    )
                    == "amended"
                )
                assert (await seen.next()).data["priority"] == version
            for priority in (7, 8):
                assert await database.fetchval(REPLACE, priority) == job
                assert (await seen.next()).data["priority"] == priority
            for _ in range(2):
                assert await database.fetchval("SELECT hybrid_runner.retry($1)", job) == "queued"
                assert (await seen.next()).name == "queued"
            assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"
            assert (await seen.next()).name == "cancelled"


@pytest.mark.usefixtures("untold")
async def test_what_nobody_published_is_found_by_a_later_round(
    dsn: str, database: Connection
) -> None:
    """B13: a lost message; a worker that never heard of readers; an UPDATE by hand."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, _):
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            await seen.until("running")
            await database.execute(
                "UPDATE hybrid_runner.jobs SET progress = '1', version = version + 1 WHERE id = $1",
                job,
            )
            assert (await seen.next()).name == "progress"
            steps.say(None)
            assert await seen.rest() == ["completed"]


async def test_a_client_that_comes_back_gets_what_it_has_not_seen(
    dsn: str, database: Connection
) -> None:
    """B13: Last-Event-ID; nothing twice, nothing older, and 204 once it has seen the end."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, worker):
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            running = await seen.until("running")
        async with client.events(f"/jobs/{job}/events", seen=running.id) as again:
            steps.progress(0.5)
            progress = await again.next()
            assert progress.name == "progress"
        steps.say(None)
        await worker.settled(1)
        async with client.events(f"/jobs/{job}/events", seen=progress.id) as later:
            last = await later.next()
            assert last.name == "completed"
            assert await later.rest() == []
        assert int(str(running.id)) < int(str(progress.id)) < int(str(last.id))
        async with client.session.get(
            f"/jobs/{job}/events", headers={"Last-Event-ID": str(last.id)}
        ) as response:
            assert response.status == 204
        async with client.session.get(
            f"/jobs/{job}/events", headers={"Last-Event-ID": "x"}
        ) as response:
            assert response.status == 400
        assert await database.fetchval(
            "SELECT hybrid_runner.pause('default') AND hybrid_runner.retry($1) = 'queued'", job
        )
        async with client.events(f"/jobs/{job}/events", seen=last.id) as anew:
            assert (await anew.next()).name == "queued"


async def test_all_jobs_of_a_queue_and_of_a_kind_are_shown_from_their_insert_on(
    dsn: str, database: Connection
) -> None:
    """B13 F5: by plain SQL, by nobody's handler, and nothing of other queues and kinds."""
    async with served(Stepwise(dsn).app) as (client, worker):
        old = await database.fetchval(INSERT, "brief", "images")
        await worker.settled(1)
        async with (
            client.events("/events?queue=images&kind=brief") as narrow,
            client.events("/events?kind=strange") as strange,
            client.events("/events") as wide,
        ):
            await database.fetchval(INSERT, "note", "images")
            other = await database.fetchval(INSERT, "strange", "default")
            job = await database.fetchval(INSERT, "brief", "images")
            assert (await strange.next()).data["id"] == other
            shown = [await narrow.next()]
            while shown[-1].name != "completed":
                shown.append(await narrow.next())
            assert {event.data["id"] for event in shown} == {job}
            everything = [await wide.next() for _ in range(3)]
            assert {event.data["id"] for event in everything} >= {other}
            assert old not in {event.data["id"] for event in everything}


async def test_a_job_that_nobody_claims_shows_when_it_is_inserted(
    dsn: str, database: Connection
) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with client.events("/events?queue=images") as seen:
            for _ in range(3):
                job = await database.fetchval(INSERT, "brief", "images")
                queued = await seen.next()
                assert (queued.name, queued.data["id"]) == ("queued", job)


async def test_nothing_is_published_while_nobody_reads(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13: no NOTIFY, no connection, no announcement; all of it while somebody reads; none of it a
    while after.
    """
    monkeypatch.setattr(job_stream, "LINGER", 0.2)
    steps = Stepwise(dsn)
    async with (
        listening(dsn, await changes_channel(database)) as said,
        listening(dsn, messages.READERS) as announced,
        served(steps.app) as (client, worker),
    ):
        for turn in (1, 2):
            for _ in range(20):
                await database.fetchval(INSERT, "brief", "images")
            await worker.settled(turn * 20 + turn - 1)
            await database.fetchval(
                "SELECT hybrid_runner.retry(hybrid_runner.enqueue('steps', delay => '1 hour'))"
            )
            steps.say(None)
            await worker.settled(turn * 21)
            assert await said.so_far() == []
            assert await announced.so_far() == []
            assert await database.fetchval(READERS) == 0
            assert await database.fetchval(OF_THE_STREAM) == 1, "the worker's own listener"
            if turn == 1:
                async with client.events("/events") as seen:
                    await until_fetched(database, f"{READERS} > 0", value=True)
                    assert await database.fetchval(OF_THE_STREAM) == 3
                    await until(lambda: inside.knows_of_readers(worker))
                    job = await database.fetchval(INSERT, "steps", "default")
                    await seen.until("running")
                    steps.say(None)
                    await seen.until("completed")
                    await worker.settled(22)
                assert any(str(job) in message.split(" ") for message in await said.so_far())
                await until_fetched(database, READERS, 0)
                await until_fetched(database, OF_THE_STREAM, 1)
                await until(lambda: not inside.knows_of_readers(worker))
                await said.so_far()
                await announced.so_far()
                inside.set_settled(worker, completed=21)


async def test_whoever_reads_too_slowly_is_told_so_last_and_sent_away(
    dsn: str,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B13: others go on undisturbed."""
    monkeypatch.setattr(reader, "BUFFER", 40)
    monkeypatch.setattr(events, "STOP_PATIENCE", 1000.0)  # until the slow one reads its end
    caplog.set_level("INFO", "hybrid_runner.web")
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", client.port))
            slow.sendall(b"GET /events HTTP/1.0\r\n\r\n")
            async with client.events("/events?kind=other") as other:
                while "too slowly" not in caplog.text:
                    await database.execute(
                        "INSERT INTO hybrid_runner.jobs (kind) SELECT 'brief' FROM"
                        " generate_series(1, 30)"
                    )
                    await asyncio.sleep(0.02)
                await database.execute(INSERT, "other", "default")
                assert (await other.next()).data["kind"] == "other"
            slow.settimeout(120)
            text = await asyncio.to_thread(_read_all, slow)
    *_, last = text.strip().split(b"\n\n")
    assert last.startswith(b"event: end\ndata: ")
    assert b"too slowly" in last


def _read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


async def test_so_many_may_read_and_no_more(dsn: str) -> None:
    async with served(Stepwise(dsn, http_readers=2).app) as (client, _):
        async with client.events("/events"), client.events("/events"):
            async with client.session.get("/events") as refused:
                assert (refused.status, "Retry-After" in refused.headers) == (503, True)
                assert "HYBRID_RUNNER_HTTP_READERS" in (await refused.json())["error"]
            assert (await client.get("/health")).status == 200
        await until(
            lambda: status_of(client, "/events"), equals(200)
        )  # they have hung up, which is seen a moment later


async def test_a_quiet_stream_gives_signs_of_life(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE", 0.05)
    async with served(Stepwise(dsn).app) as (client, _), client.events("/events") as seen:
        assert [await seen.comment() for _ in range(3)] == ["keep-alive"] * 3


async def test_a_job_that_was_deleted_ends_its_stream(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen:
            await seen.next()
            await database.execute("DELETE FROM hybrid_runner.jobs WHERE id = $1", job)
            assert await seen.rest() == ["gone"]


async def test_what_postgres_calls_infinity_is_shown(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('steps', 'infinity')"
            " RETURNING id"
        )
        assert (await client.get(f"/jobs/{job}")).body["state"] == "queued"
        async with client.events(f"/jobs/{job}/events") as seen:
            assert (await seen.next()).name == "queued"
            await database.execute(
                "UPDATE hybrid_runner.jobs SET version = version + 2 WHERE id = $1", job
            )
            assert (await seen.next()).data["version"] == 3


async def test_head_says_what_get_would_and_reads_nothing(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn, http_readers=1).app) as (client, _):
        job = await database.fetchval(INSERT, "steps", "default")
        for path in (f"/jobs/{job}/events", "/events"):
            async with client.session.head(path) as response:
                assert (response.status, response.content_type) == (200, "text/event-stream")
        async with client.events("/events"):
            pass


@pytest.mark.usefixtures("published_only")
async def test_whoever_reads_of_many_jobs_sees_one_that_somebody_else_watches_too(
    dsn: str, database: Connection
) -> None:
    """B13: what another reader was shown before is no reason to keep it from this one."""
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, worker):
        await database.execute(PAUSED)
        async with client.events("/events?queue=default") as many:
            await until(lambda: inside.knows_of_readers(worker))
            for _ in range(5):
                job = await database.fetchval(INSERT, "steps", "default")
                async with client.events(f"/jobs/{job}/events") as one:
                    assert (await one.next()).name == "queued"
                    queued = await many.next()
                    assert (queued.name, queued.data["id"]) == ("queued", job)
            await steps.app.resume("default")
            for _ in range(5):
                steps.say(1)
            ends = {(await many.until("completed")).data["id"] for _ in range(5)}
            assert job in ends
            assert len(ends) == 5
