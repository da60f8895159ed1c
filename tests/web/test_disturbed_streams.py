"""What disturbs a stream, and must not end those of others: strangers, slow readers, jobs that cannot be shown, a server that hangs (B13)."""

from __future__ import annotations

import asyncio

from hybrid_runner.storage.connections import Connection, connect
from tests.support.streams import Stepwise, served
from tests.web.test_events import CHANGES, INSERT, LAMP, PAUSED, until


async def test_an_id_that_no_job_can_have_disturbs_no_reader(dsn: str, database: Connection) -> None:
    """B13: anybody who may NOTIFY can say it, again and again."""
    async with served(Stepwise(dsn).app) as (client, _):
        await database.execute(PAUSED)
        async with client.events("/events") as seen:
            await until(database, f"{LAMP} > 0", value=True)
            stranger = await connect(dsn)
            for _ in range(5):
                await stranger.execute("SELECT pg_notify($1, $2)", CHANGES, "default x 9223372036854775807 9223372036854775808")
                job = await database.fetchval(INSERT, "steps", "default")
                shown = await seen.next()
                assert (shown.name, shown.data["id"]) == ("queued", job)
            await stranger.close()
