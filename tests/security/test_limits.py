"""What a producer may ask for is bounded by the handler."""

from __future__ import annotations

import asyncio

from hybrid_runner import Job
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.logins import Login, Logins
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

GREEDY = """
INSERT INTO hybrid_runner.jobs (kind, timeout, max_attempts)
VALUES ($1, '10 years', 1000)
"""


async def test_a_handler_that_hangs_ends_at_its_own_time_out_whatever_a_job_says(
    dsn: str, login: Logins, database: Connection
) -> None:
    app = runner(dsn)

    @app.job("hangs", timeout=0.2, max_attempts=1)
    async def hangs(payload: object, job: Job) -> None:
        await asyncio.Event().wait()

    async with working(app):
        producer = await connect(login(Login.PRODUCER))
        await producer.execute(GREEDY, "hangs")
        await producer.close()
        await until_fetched(
            database,
            "SELECT format('%s at attempt %s of %s', state, attempt, max_attempts)"
            " FROM hybrid_runner.archive",
            "failed at attempt 1 of 1",
        )
