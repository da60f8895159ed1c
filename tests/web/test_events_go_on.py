"""Streams of events whatever becomes of workers, servers and poolers behind them, and of strangers
beside them (B13).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_runner.model import messages
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.web.stream import job_stream
from tests.cli.running import worker as worker_process
from tests.support.faults import own_server
from tests.support.outside import missing
from tests.support.pgbouncer import find, pgbouncer, why_absent
from tests.support.ports import free_port
from tests.support.streams import (
    BEARER,
    TOKEN,
    Event,
    Stepwise,
    changes_channel,
    pages,
    served,
)
from tests.support.waiting import until_fetched
from tests.support.working import runner, working
from tests.web.test_events import INSERT, PAUSED, READERS


async def test_readers_are_told_of_a_stop_while_the_worker_still_waits_for_its_jobs(
    dsn: str,
) -> None:
    """A13 B13"""
    port = free_port()
    steps = Stepwise(dsn, http_port=port, grace="5m")  # it ends when the test has seen it
    async with pages(port) as client:
        work = asyncio.create_task(steps.app.run_worker())
        await client.until("/ready", 200)
        handle = await steps.app.enqueue("steps", {})
        async with (
            client.events(f"/jobs/{handle.id}/events") as of_one,
            client.events("/events") as of_all,
        ):
            await of_one.until("running")
            os.kill(os.getpid(), signal.SIGTERM)
            for seen in (of_one, of_all):
                end = await seen.until("end")
                assert "stops" in end.data["reason"]
                assert await seen.rest() == []
        async with client.session.get("/events") as refused:
            assert refused.status == 503
        assert (await client.get("/health")).body["worker"]["running"] == 1
        steps.say(None)
        await work


async def test_a_reader_survives_a_restart_of_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """A9 B13: a reader is told that the database is away, and once it is back where the job stands;
    health never waits for it.
    """
    monkeypatch.setattr(job_stream, "_LONGEST_OUTAGE_PAUSE", 0.1)
    async with own_server() as server:
        steps = Stepwise(server.dsn)
        async with served(steps.app) as (client, _):
            job = await steps.app.enqueue("steps", {})
            async with (
                client.events(f"/jobs/{job.id}/events") as seen,
                client.events("/events") as all_seen,
            ):
                await seen.until("running")
                await server.stop(signal.SIGINT)
                await seen.until("away")
                await all_seen.until("away")
                assert (await client.get("/health")).status in (200, 503)
                async with client.session.get(f"/jobs/{job.id}") as response:
                    assert response.status == 503
                await server.start()
                await seen.until("back")
                assert (await seen.next()).name == "running"
                await all_seen.until("back")
                assert await all_seen.next() == Event("skipped", None, {"at_least": 0})
                steps.progress(0.5)
                await seen.until("progress")
                steps.say(None)
                assert await seen.rest() == ["completed"]
                await all_seen.until("completed")


@pytest.fixture
def pooled_dsn(dsn: str) -> Iterator[str]:
    if find() is None:
        missing(why_absent())
    with pgbouncer(dsn) as by_pooler:
        yield by_pooler


async def test_behind_a_pooler_what_is_watched_is_polled(
    dsn: str, pooled_dsn: str, database: Connection
) -> None:
    """B13: LISTEN succeeds there, and nothing ever arrives."""
    steps = Stepwise(pooled_dsn, poll_base="50ms", poll_cap="50ms")
    async with served(steps.app, deaf=True) as (client, worker):
        job = await database.fetchval(INSERT, "steps", "default")
        async with (
            client.events(f"/jobs/{job}/events") as seen,
            client.events("/events?queue=images") as all_seen,
        ):
            await seen.until("running")
            steps.progress(0.5)
            await seen.until("progress")
            await database.execute("SELECT hybrid_runner.pause('images')")
            brief = await database.fetchval(INSERT, "brief", "images")
            assert (await all_seen.next()).name == "queued"
            assert await database.fetchval("SELECT hybrid_runner.cancel($1)", brief) == "cancelled"
            await all_seen.until("cancelled")
            steps.say(None)
            assert await seen.rest() == ["completed"]
        assert not worker.status().hearing
        assert await database.fetchval(READERS) == 0


async def test_the_parent_of_several_processes_serves_the_same(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """B13: changes come from its children."""
    (tmp_path / "tasks.py").write_text(
        "import asyncio\nfrom hybrid_runner import Runner\napp = Runner()\n"
        '@app.job("wait")\nasync def wait(payload: dict) -> None:\n    await asyncio.sleep(300)\n'
    )
    port = free_port()
    own = {"HYBRID_RUNNER_HTTP_PORT": str(port), "HYBRID_RUNNER_HTTP_TOKEN": TOKEN}
    async with (
        worker_process(
            "tasks:app", "--processes", "2", "--dsn", dsn, cwd=tmp_path, **own
        ) as process,
        pages(port) as client,
    ):
        await client.until("/ready", 200)
        async with client.events("/events?kind=wait") as of_all:
            job = await database.fetchval(INSERT, "wait", "default")
            async with client.events(f"/jobs/{job}/events") as seen:
                await seen.until("running")
                async with client.session.post(f"/jobs/{job}/cancel", headers=BEARER) as response:
                    assert (response.status, await response.json()) == (
                        202,
                        {"id": job, "outcome": "requested"},
                    )
                assert "cancelled" in await seen.rest()
            await of_all.until("cancelled")
            process.process.send_signal(signal.SIGTERM)
            assert "stops" in (await of_all.until("end")).data["reason"]
        assert await process.ended() == 0
    assert TOKEN not in str(process.lines)


async def test_two_page_servers_announce_readers_for_each_other(
    dsn: str, database: Connection
) -> None:
    """A worker without pages tells both."""
    steps, others = Stepwise(dsn), runner(dsn)

    @others.job("else", queue="else")
    async def nothing(payload: dict[str, int]) -> None:
        pass

    async with (
        working(others),
        served(steps.app) as (first, _),
        served(Stepwise(dsn).app, queues={"else": 1}) as (second, _),
    ):
        await database.execute(PAUSED)
        job = await database.fetchval(INSERT, "steps", "default")
        async with (
            first.events(f"/jobs/{job}/events") as one,
            second.events(f"/jobs/{job}/events") as two,
        ):
            await until_fetched(database, f"{READERS} > 0", value=True)
            await steps.app.resume("default")
            steps.say(None)
            for seen in (one, two):
                assert (await seen.rest())[-1] == "completed"


async def test_a_stranger_on_the_channel_does_no_harm(dsn: str, database: Connection) -> None:
    steps = Stepwise(dsn)
    async with served(steps.app) as (client, worker):
        job = await database.fetchval(INSERT, "steps", "default")
        async with client.events(f"/jobs/{job}/events") as seen, client.events("/events"):
            await seen.until("running")
            shout = await connect(dsn)
            for channel in ((await changes_channel(database)).name, messages.READERS.name):
                for payload in ("", "x", "a b c d", "-1", "9" * 30, "a b 0 " + "9" * 25, "\u0664"):
                    await shout.execute("SELECT pg_notify($1, $2)", channel, payload)
            await shout.close()
            steps.say(None)
            assert (await seen.rest())[-1] == "completed"
        assert worker.status().ended_loops == ()
