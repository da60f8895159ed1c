"""What a worker is to the others, and how it knows that it still is."""

from __future__ import annotations

import asyncio

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.loops import Outage
from tests.support import inside
from tests.support.waiting import at_least, until
from tests.support.working import runner, working

INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')"


async def test_a_listener_that_hears_nothing_is_connected_again(
    dsn: str, database: Connection
) -> None:
    """F3: the connection lives, and says nothing; each heartbeat sends a ring that must come
    back.
    """
    app = runner(dsn, heartbeat="200ms", lease="6s")  # a ring may take 2.5 s to come back
    ran = asyncio.Event()

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        ran.set()

    async with working(app) as worker:
        before = inside.proof_channel(worker)
        await inside.ask_listener(worker, "UNLISTEN *")
        await until(lambda: inside.proof_channel(worker) != before and worker.status().hearing)
        await worker.idle()
        found = dict(worker.status().queues[0].found)
        await database.execute(INSERT)
        await asyncio.wait_for(ran.wait(), 120)
        now = worker.status().queues[0].found
        assert {way for way in now if now[way] != found.get(way, 0)} == {"ring"}


async def test_a_listener_that_hears_stays_connected_over_many_heartbeats(dsn: str) -> None:
    app = runner(dsn, heartbeat="50ms", lease="6s")  # a ring may take 2.5 s to come back

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        pass

    async with working(app) as worker:
        before, first = inside.proof_channel(worker), inside.beaten_at(worker)
        await until(lambda: inside.beaten_at(worker), at_least(first + 3.5))
        assert inside.proof_channel(worker) == before


async def test_what_a_stop_could_not_put_back_is_for_the_others(
    dsn: str, database: Connection
) -> None:
    """The worker signs off and says that jobs are left: nobody has to wait for its lease to end."""
    app = runner(dsn, grace="50ms")
    began = asyncio.Event()

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        began.set()
        await asyncio.Event().wait()

    await database.execute(INSERT)
    async with working(app, deaf=True) as worker:
        await began.wait()

        async def refuse(_batch: object) -> set[int]:
            raise DatabaseUnavailable("nothing gets through")

        inside.replace_requeue(worker, lambda _: refuse)
    row = await database.fetchrow(
        "SELECT dead_at IS NOT NULL, heartbeat_at + lease > clock_timestamp() FROM"
        " hybrid_runner.workers"
    )
    assert row is not None
    assert tuple(row) == (True, True)


async def test_claims_wait_for_a_heartbeat_that_says_that_we_live(
    dsn: str, database: Connection
) -> None:
    """After a network that was away the others may have declared us dead: what we claimed then
    would run twice.
    """
    app = runner(dsn, heartbeat="5m", lease="15m")
    ran = asyncio.Event()

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        ran.set()

    async with working(app) as worker:
        beaten_at = inside.beaten_at(worker)
        inside.has_not_beaten_for(worker, 1000)
        await database.execute(INSERT)
        await asyncio.wait_for(ran.wait(), 120)
        assert inside.beaten_at(worker) > beaten_at


def test_a_heartbeat_that_fails_is_tried_again_before_the_lease_ends() -> None:
    """Whatever pause an outage would have: the lease may be short."""
    outage = Outage("heartbeat", longest=0.5)
    assert max(outage.failed(DatabaseUnavailable("away")) for _ in range(20)) == 0.5
