"""The network swallows what is said: connections stay open, and nothing arrives."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Worker
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.cli.running import ROOT, worker
from tests.support import inside
from tests.support.bells import seen
from tests.support.busy import INSERT, LEFT, QUICK_BEATS, App, ended, hears_again
from tests.support.proxy import Proxy
from tests.support.waiting import until, until_fetched
from tests.support.working import working

pytestmark = pytest.mark.usefixtures("short_pauses", "short_patience")

SHORT_LEASE: dict[str, Any] = {"lease": "3s"} | QUICK_BEATS
"""A beat without an answer is given up after a second."""
PATIENCE = 1.5
BEATEN = "SELECT max(heartbeat_at) FROM hybrid_runner.workers"
LIVE = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds would be waited for in full."""
    inside.make_patience_short(monkeypatch, PATIENCE)


async def freeze_at(
    moment: str, proxy: Proxy, app: App, database: Connection, *, newcomers: bool
) -> None:
    """Freeze all connections while there is nothing to do, or with a statement on its way."""
    match moment:
        case "claim" | "claim's answer":
            [claims] = proxy.freeze("claims", answers_only="answer" in moment)
            await database.fetch(INSERT, "brief", 1)
            await claims.held.wait()
        case "settle" | "settle's answer":
            [settles] = proxy.freeze("settles", answers_only="answer" in moment)
            app.let_go.set()
            await settles.held.wait()
    proxy.freeze(newcomers=newcomers)


async def busy(worker: Worker, app: App, database: Connection) -> int:
    """All connections were used, a job is held; how many will have ended."""
    await database.fetch(INSERT, "brief", 20)
    await ended(worker, 20)
    await database.fetch(INSERT, "hold", 1)
    await until(lambda: app.holding == 1)
    await until(lambda: seen(worker).mode == "asleep")
    return 20


@pytest.mark.parametrize("moment", ["idle", "claim", "claim's answer", "settle", "settle's answer"])
@pytest.mark.parametrize("then", ["thawed", "cut", "replaced"])
async def test_a_frozen_network_holds_work_up_no_longer_than_it_lasts(
    moment: str, then: str, dsn: str, database: Connection
) -> None:
    """A9: it thaws; its connections are cut; or they stay dead while new ones work, as behind a
    router that forgot them.
    """
    async with Proxy(dsn) as proxy:
        app = App(proxy.dsn, **SHORT_LEASE)
        async with working(app.runner) as worker:
            count = await busy(worker, app, database)
            accepted = proxy.accepted
            await freeze_at(moment, proxy, app, database, newcomers=then != "replaced")
            await until(lambda: proxy.accepted > accepted)  # it was noticed
            await database.fetch(INSERT, "brief", 20)
            if then == "thawed":
                proxy.thaw()
            elif then == "cut":
                await proxy.cut()
                await proxy.mend()
            app.let_go.set()
            count += 21 + ("claim" in moment)
            await ended(worker, count)
            assert await database.fetchval(LEFT) == 0
            await hears_again(worker, database, count + 1)
            assert app.ran_once
            assert not app.cancelled
            assert worker.status().ended_loops == ()
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive") == 1


async def test_a_claim_that_arrives_after_it_was_given_up_takes_nothing(
    dsn: str, database: Connection
) -> None:
    """What it took would run nowhere, under a worker that lives, for ever."""
    async with Proxy(dsn) as proxy:
        app = App(proxy.dsn, **SHORT_LEASE)
        async with working(app.runner, {"default": 1}) as worker:
            await database.fetch(INSERT, "brief", 1)
            await ended(worker, 1)
            [claims] = proxy.freeze("claims")
            session = await pid_of(database, "claims")
            await database.fetch(INSERT, "brief", 1)
            await claims.held.wait()
            proxy.freeze()
            await ended(worker, 2)  # by new connections
            await database.fetch(INSERT, "hold", 1)
            await until(lambda: app.holding == 1)
            await database.fetch(INSERT, "brief", 1)  # no slot is free, and the claim of old comes
            proxy.thaw()
            await until_fetched(database, LIVE, 0, session)
            app.let_go.set()
            await ended(worker, 4)
            assert await database.fetchval(LEFT) == 0


async def pid_of(database: Connection, purpose: str) -> int:
    return int(
        await database.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND"
            " application_name = $1",
            f"hybrid-runner {purpose}",
        )
    )


async def test_what_a_worker_that_was_cut_off_says_later_changes_nothing(
    dsn: str, database: Connection
) -> None:
    """D5: the others declare it dead and run its jobs again; it comes back, hears of it, and goes
    on under another name.
    """
    async with Proxy(dsn) as proxy:
        cut_off, other = App(proxy.dsn, **SHORT_LEASE), App(dsn, **SHORT_LEASE)
        async with working(cut_off.runner) as worker:
            await database.fetch(INSERT, "hold", 3)
            await until(lambda: cut_off.holding == 3)
            async with working(other.runner):
                [settles] = [
                    relayed
                    for relayed in proxy.freeze(newcomers=True)
                    if relayed.purpose == "settles"
                ]
                cut_off.let_go.set()
                await settles.held.wait()
                other.let_go.set()
                await until_fetched(database, LEFT, 0)
                proxy.thaw()
                await until(lambda: "~" in worker.id)
            assert not worker.status().settled
            await database.fetch(INSERT, "brief", 1)
            await until(lambda: len(cut_off.began) == 4)
        assert worker.status().stale == 3
    ended_by = (
        "SELECT DISTINCT attempt, worker_id LIKE '%~%' FROM hybrid_runner.archive WHERE kind ="
        " 'hold'"
    )
    assert [tuple(row) for row in await database.fetch(ended_by)] == [(2, False)]


async def test_outcomes_that_find_no_way_out_are_bounded(dsn: str, database: Connection) -> None:
    """With N slots no more than 2N of them wait, while claims and heartbeats go on."""
    async with Proxy(dsn) as proxy:
        app = App(proxy.dsn, lease="30s", heartbeat="200ms")
        async with working(app.runner, {"default": 3}) as worker:
            await database.fetch(INSERT, "brief", 1)
            await ended(worker, 1)
            [settles] = proxy.freeze("settles")
            await database.fetch(INSERT, "brief", 100)
            await settles.held.wait()
            await until(
                lambda: worker.status().pending_settlements == 6 and seen(worker).mode == "full"
            )
            beaten_at = await database.fetchval(BEATEN)
            # it has had time to go too far
            await until(
                lambda: database.fetchval(BEATEN),
                lambda later: later >= beaten_at + timedelta(seconds=0.5),
            )
            assert (worker.status().pending_settlements, len(app.began)) == (6, 7)
            proxy.thaw()
            await ended(worker, 101)
            assert app.ran_once


@pytest.mark.parametrize("moment", ["idle", "claim", "settle"])
@pytest.mark.parametrize("grace", [0.1, 2])
async def test_a_stop_ends_on_a_frozen_network(
    moment: str, grace: float, dsn: str, database: Connection
) -> None:
    """A13: the grace, and a few seconds to give up; what was running is for others, once the lease
    has ended.
    """
    async with Proxy(dsn) as proxy:
        app = App(proxy.dsn, lease="30s", grace=grace, slots=3)
        async with working(app.runner) as worker:
            await busy(worker, app, database)
            await database.fetch(INSERT, "hold", 1)
            await until(lambda: app.holding == 2)
            await freeze_at(moment, proxy, app, database, newcomers=True)
            app.let_go.clear()
            began = time.monotonic()
            await worker.stop()
            took = time.monotonic() - began
            await app.runner.close()
            closed = time.monotonic() - began
            proxy.thaw()
        # Sooner than the lease would end, however busy the machine is.
        assert took < grace + PATIENCE + 15
        assert closed < grace + PATIENCE + 20
        assert worker.status().running == 0


async def test_a_process_ends_on_a_frozen_network(dsn: str, database: Connection) -> None:
    """A13: SIGTERM, with everything that a process has to close."""
    await database.execute("CREATE TABLE public.runs (job_id bigint, pid int, what text)")
    async with Proxy(dsn) as proxy:
        settings = {
            "HYBRID_RUNNER_DSN": proxy.dsn,
            "HYBRID_RUNNER_GRACE": "1s",
            "HYBRID_RUNNER_LOG_LEVEL": "info",
        }
        async with worker("tests.behaviour.lost_app:app", cwd=ROOT, **settings) as process:
            await process.says("listening on")
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('long', '100')"
            )
            await until_fetched(database, "SELECT count(*) FROM public.runs", 1)
            proxy.freeze(newcomers=True)
            assert await asyncio.wait_for(process.ends(), 120) == 0
    assert any("did not take 1 outcomes" in line["message"] for line in process.lines)


async def test_the_server_probes_connections_that_say_nothing(dsn: str) -> None:
    """A machine that lost its power says no good-bye, and its listener's locks would stand for
    hours.
    """
    connection = await connect(dsn)
    probed = (
        "SELECT bool_and(source = 'client') FROM pg_settings WHERE name LIKE 'tcp_keepalives_%'"
    )
    assert await connection.fetchval(probed)
    await connection.close()
