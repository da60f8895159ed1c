"""signal."""

from __future__ import annotations

import asyncio
import json

from hybrid_runner import Job, State
from tests.cli.running import succeeds
from tests.support.working import runner, working


async def test_a_signal_is_sent_to_the_job_that_waits_for_it(dsn: str) -> None:
    app = runner(dsn)

    @app.job("order")
    async def order(_: dict[str, int], job: Job) -> str:
        return str(await job.signal("paid:7", timeout="1h"))

    async with working(app):
        handle = await app.enqueue(order, {})
        said = await asyncio.to_thread(succeeds, "signal", "paid:7", '"by Ada"', "--dsn", dsn)
        assert await handle.wait("2m") == "by Ada"
    assert said == "signal 1 is sent: jobs that wait for 'paid:7' are given it\n"
    ended = await app.get(handle.id)
    assert ended is not None
    assert ended.state is State.COMPLETED


async def test_a_signal_without_a_payload_is_null(dsn: str) -> None:
    said = json.loads(await asyncio.to_thread(succeeds, "signal", "paid:8", "--json", "--dsn", dsn))
    assert said == {"id": 1, "key": "paid:8"}
