"""How many sessions a worker has while nothing happens."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_runner import Job
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.queue_depths import QueueDepths
from hybrid_runner.upkeep.held_duty import HeldDuty
from tests.support import inside
from tests.support.waiting import equals, until
from tests.support.working import runner, working

AT_REST = ["hybrid-runner claims", "hybrid-runner heartbeat", "hybrid-runner listener"]
SESSIONS = (
    "SELECT coalesce(array_agg(application_name ORDER BY application_name), '{}')"
    " FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'hybrid-runner %'"
)


async def test_a_worker_at_rest_has_three_sessions_and_takes_more_when_it_needs_them(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.make_lingering_short(monkeypatch)
    app = runner(dsn)

    @app.job("tell")
    async def tell(payload: object, job: Job) -> None:
        await job.progress(0.5, "half way")

    async def sessions() -> list[str]:
        names: list[str] = await database.fetchval(SESSIONS)
        return names

    async with working(app) as worker:
        await until(sessions, equals(AT_REST))
        for count in (1, 2):
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('tell')")
            await worker.settled(count)
            await until(sessions, equals(AT_REST))
        inside.rescue_first(worker)
        inside.beat_soon(worker)
        await until(lambda: inside.is_to_rescue_first(worker), equals(value=False))
        await until(sessions, equals(AT_REST))


async def test_a_held_duty_has_a_session_only_while_it_works(
    dsn: str, database: Connection
) -> None:
    duty = QueueDepths()
    held = HeldDuty(dsn, duty)
    await database.execute(
        "UPDATE hybrid_runner.duties SET holder = 'us', taken_at = now()"
        " WHERE name = 'queue_depths'"
    )
    held.give("us")
    running = asyncio.ensure_future(held.run())
    try:
        await until(duty.metric_values)
        await until(lambda: database.fetchval(SESSIONS), equals([]))
        assert inside.holds(held)
    finally:
        running.cancel()
        await asyncio.wait([running])
        await held.close()
