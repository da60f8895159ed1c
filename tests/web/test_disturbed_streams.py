"""What disturbs a stream must not end those of others: strangers, slow readers, odd jobs, a server
that hangs (B13).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from functools import partial

import pytest

from hybrid_runner.storage.connections import connection
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.web import database as database_module
from hybrid_runner.web.stream import events, job_stream, new_jobs, reader
from tests.support.proxy import Proxy
from tests.support.streams import (
    BEARER,
    TOKEN,
    Event,
    Events,
    Pages,
    Stepwise,
    changes_channel,
    served,
    status_of,
)
from tests.support.waiting import equals, until, until_fetched
from tests.web.test_events import INSERT, PAUSED, READERS

MANY = (
    "INSERT INTO hybrid_runner.jobs (kind, queue) SELECT 'many', 'default' FROM"
    " generate_series(1, $1)"
)
WITH_A_FEW = """
WITH few AS (INSERT INTO hybrid_runner.jobs (kind, queue) VALUES ('few', 'images') RETURNING id)
INSERT INTO hybrid_runner.jobs (kind, queue)
SELECT 'many', 'default' FROM few, generate_series(1, $1)
"""
ODD = ("1e400", "-1e400", "[" * 300 + "]" * 300, "[" * 1010 + "]" * 1010, "1" * 5000)


async def until_included(seen: Events, database: Connection) -> None:
    """From here on it misses nothing."""
    await until_fetched(database, f"{READERS} > 0", value=True)
    job = await database.fetchval(INSERT, "first", "images")
    while (await seen.next()).data["id"] != job:
        pass


def asking(client: Pages, path: str) -> socket.socket:
    """A reader that does not read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", client.port))
    connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    return connection


async def test_an_id_that_no_job_can_have_disturbs_no_reader(
    dsn: str, database: Connection
) -> None:
    """Anybody who may NOTIFY can say it, again and again."""
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with client.events("/events") as seen:
            await until_fetched(database, f"{READERS} > 0", value=True)
            stranger, channel = await connect(dsn), await changes_channel(database)
            for _ in range(5):
                await stranger.execute(
                    "SELECT pg_notify($1, $2)",
                    channel.name,
                    "default x 9223372036854775807 9223372036854775808",
                )
                job = await database.fetchval(INSERT, "steps", "default")
                shown = await seen.next()
                assert (shown.name, shown.data["id"]) == ("queued", job)
            await stranger.close()


async def test_readers_that_hang_up_while_the_server_hangs_make_room_for_others(dsn: str) -> None:
    """And count until their requests have ended."""
    async with Proxy(dsn) as proxy, served(Stepwise(proxy.dsn, http_readers=1).app) as (client, _):
        proxy.freeze("of nobody", newcomers=True)
        for _ in range(2):
            with asking(client, "/events"):
                await until(lambda: _is_refused(client))
            await until(lambda: _is_refused(client), equals(value=False))
        proxy.thaw()


async def test_a_request_that_still_waits_for_the_server_counts_as_a_reader(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks and hangs up, again and again, gets no further than `http_readers`."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 1000.0)
    monkeypatch.setattr(database_module, "PATIENCE", 1000.0)
    monkeypatch.setattr(job_stream, "_READER_CHECK", 0.001)
    async with Proxy(dsn) as proxy, served(Stepwise(proxy.dsn, http_readers=1).app) as (client, _):
        proxy.freeze("of nobody", newcomers=True)
        with asking(client, "/jobs/1/events"):
            await until(lambda: _is_refused(client))
        for _ in range(100):
            assert await status_of(client, "/events") == 503
        proxy.thaw()
        await until(lambda: _is_refused(client), equals(value=False))


async def _is_refused(client: Pages) -> bool:
    """Whether no more may read; a reader who may would wait for the server."""
    try:
        async with asyncio.timeout(0.3):
            return await status_of(client, "/events") == 503
    except TimeoutError:
        return False


async def test_all_jobs_of_a_bulk_insert_are_shown(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with (
            client.events("/events?queue=default") as wide,
            client.events("/events?queue=images") as narrow,
        ):
            await until_included(narrow, database)
            await database.execute(WITH_A_FEW, 500)
            ids = [(await wide.next()).data["id"] for _ in range(500)]
            assert ids == sorted(set(ids))
            assert (await narrow.next()).data["kind"] == "few"


async def test_new_jobs_that_have_no_room_are_counted(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_jobs, "MOST_WAITING", 150)
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with client.events("/events") as seen:
            await until_included(seen, database)
            await database.execute(MANY, 500)
            shown = [await seen.next()]
            while shown[-1].name != "skipped":
                shown.append(await seen.next())
            rest = 151 - len(shown)  # those that came after it was told
            assert [(await seen.next()).name for _ in range(rest)] == ["queued"] * rest
        assert shown[-1] == Event("skipped", None, {"at_least": 350})


@pytest.mark.parametrize(("most", "deepest"), [(150, 5000), (150, 100)])
async def test_whoever_else_may_have_missed_some_is_told_too(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch, most: int, deepest: int
) -> None:
    """Nobody counted whose they were, or how many."""
    monkeypatch.setattr(new_jobs, "MOST_WAITING", most)
    monkeypatch.setattr(new_jobs, "_DEEPEST", deepest)
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with (
            client.events("/events?queue=default") as wide,
            client.events("/events?queue=images") as narrow,
        ):
            await until_included(narrow, database)
            await database.execute(MANY, 500)
            for seen in (wide, narrow):
                assert (await seen.until("skipped")).data == {"at_least": 0}


async def test_changes_that_have_no_room_are_counted(dsn: str, database: Connection) -> None:
    """For those whom they concern."""
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with (
            client.events("/events?queue=images") as theirs,
            client.events("/events?queue=default") as others,
        ):
            await until_included(theirs, database)
            ids = " ".join(str(number) for number in range(10**6, 10**6 + 150))
            channel = await changes_channel(database)
            await database.execute(
                "SELECT pg_notify($1, $2)", channel.name, f"images brief 7 {ids}"
            )
            assert (await theirs.next()).data == {"at_least": 57}
            await database.execute(INSERT, "last", "default")
            assert (await others.next()).name == "queued"


async def test_a_job_that_no_encoder_can_write_is_shown_and_ends_no_stream(
    dsn: str, database: Connection
) -> None:
    """Somebody wrote it by SQL; its progress is shown as it is stored."""
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with client.events("/events") as seen:
            await until_included(seen, database)
            for odd in ODD:
                await database.execute(
                    "INSERT INTO hybrid_runner.jobs (kind, queue, progress) VALUES ('odd',"
                    " 'images', $1::jsonb)",
                    odd,
                )
                shown = await seen.next_text()
                assert shown.startswith("event: queued\n")


async def test_a_page_about_such_a_job_says_what_it_cannot_show(
    dsn: str, database: Connection
) -> None:
    async with served(Stepwise(dsn, http_token=TOKEN).app) as (client, _):
        await database.execute(PAUSED)
        hidden = {}
        for odd in ODD:
            job = await database.fetchval(
                "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('odd',"
                " jsonb_build_object('x', $1::jsonb)) RETURNING id",
                odd,
            )
            async with client.session.get(f"/jobs/{job}", headers=BEARER) as response:
                assert (response.status, response.content_type) == (200, "application/json")
                shown = await response.json()
                assert (shown["id"], shown["state"], shown["attempt"]) == (job, "queued", 0)
                hidden[odd] = shown.get("hidden", [])
                assert ("payload" in shown) is (hidden[odd] == [])
        assert hidden["1e400"] == []


async def test_a_write_that_runs_out_as_its_reader_is_dropped_ends_that_reader_alone() -> None:
    """Both in one turn of the loop: the drop must not raise into the stream."""
    one, loop, dropped = (
        reader.EventReader(reader.Subscription(), None, lambda: True),
        asyncio.get_running_loop(),
        asyncio.Event(),
    )

    def drop() -> None:
        one.end("too slowly")
        dropped.set()

    async def write() -> None:
        async with asyncio.timeout(0.05) as limit:
            one.abort_write = partial(events._give_up, limit)  # noqa: SLF001  # the very moment is what it is about
            loop.call_at((limit.when() or 0) + 0.0001, drop)
            time.sleep(0.08)  # noqa: ASYNC251  # both timers are due at once
            await asyncio.sleep(100)

    with pytest.raises(TimeoutError):
        await write()
    assert dropped.is_set()


async def test_whoever_takes_nothing_for_a_while_is_sent_away(
    dsn: str,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(events, "STUCK", 0.2)
    caplog.set_level("INFO", "hybrid_runner.web")
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        with asking(client, "/events?kind=many"):
            while "nothing was taken" not in caplog.text:
                await database.execute(MANY, 90)
                await asyncio.sleep(0.02)
    assert "a reader of /events was sent away" in caplog.text


async def test_whoever_hangs_up_at_once_costs_no_line_in_the_log(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        for path in ("/events", f"/jobs/{job}/events") * 20:
            with asking(client, path) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with client.events("/events") as seen:
            await until_included(seen, database)
    assert [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING or record.exc_info
    ] == []


async def test_a_page_gives_up_a_server_that_hangs_while_connecting(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits behind others waits no longer than they."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 1000.0)
    monkeypatch.setattr(database_module, "PATIENCE", 0.5)
    async with Proxy(dsn) as proxy, served(Stepwise(proxy.dsn).app) as (client, _):
        proxy.freeze("of nobody", newcomers=True)
        assert await asyncio.gather(*(status_of(client, "/jobs/1") for _ in range(3))) == [503] * 3
        monkeypatch.setattr(database_module, "PATIENCE", 1000.0)
        proxy.thaw()
        assert await status_of(client, "/jobs/1") == 404


@pytest.mark.parametrize(("few", "most", "slow"), [(2, 64, 0.0), (1, 2, 1000.0)])
async def test_only_so_many_wait_for_an_answer(
    dsn: str, monkeypatch: pytest.MonkeyPatch, few: int, most: int, slow: float
) -> None:
    """A few while nothing is answered; many never."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 1000.0)
    monkeypatch.setattr(database_module, "MOST_WAITING_WHILE_SLOW", few)
    monkeypatch.setattr(database_module, "MOST_WAITING", most)
    monkeypatch.setattr(database_module, "SLOW", slow)
    monkeypatch.setattr(database_module, "PATIENCE", 1000.0)
    async with Proxy(dsn) as proxy, served(Stepwise(proxy.dsn).app) as (client, _):
        proxy.freeze("of nobody", newcomers=True)
        asked = [asyncio.create_task(status_of(client, "/jobs/1")) for _ in range(3)]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert ([task.result() for task in done], len(waiting)) == ([503], 2)
        proxy.thaw()
        assert await asyncio.gather(*waiting) == [404, 404]


async def test_a_missing_right_is_told_from_a_server_that_is_away(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log says which."""
    await database.execute(
        "REVOKE EXECUTE ON FUNCTION hybrid_runner.archived FROM hybrid_runner_worker"
    )
    as_worker = f"{dsn}{'&' if '?' in dsn else '?'}role=hybrid_runner_worker"
    async with served(Stepwise(as_worker).app, deaf=True) as (client, _):
        for _ in range(3):
            async with client.session.get("/jobs/1") as response:
                assert response.status == 503
                assert "log says why" in (await response.json())["error"]
    lines = [
        record.getMessage()
        for record in caplog.records
        if "permission denied" in record.getMessage()
    ]
    assert len(lines) == 1
    assert "archived" in lines[0]
