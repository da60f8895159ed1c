"""A handler knows which schedule its job is of, and for which time."""

from __future__ import annotations

import json

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until_fetched
from tests.support.working import runner, working
from tests.worker import scheduled_handlers

ENDED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"
RESULTS = "SELECT result::text AS result, tick FROM hybrid_runner.archive ORDER BY tick NULLS LAST"


@pytest.mark.parametrize("kind", ["in_the_loop", "in_a_thread", "in_a_process"])
async def test_a_job_says_its_schedule_and_its_tick_wherever_it_runs(
    dsn: str, database: Connection, kind: str
) -> None:
    app = runner(dsn, scheduled_handlers.app.registry)
    async with working(app):
        await app.add_schedule("s", kind, at=await database.fetchval("SELECT now()"))
        await until_fetched(database, ENDED, 1)
        await app.run_now("s")
        await app.enqueue(kind, {})
        await until_fetched(database, ENDED, 3)
    ticked, *others = await database.fetch(RESULTS)
    assert json.loads(ticked["result"]) == ["s", ticked["tick"].isoformat()]
    assert {other["result"] for other in others} == {'["s", null]', "[null, null]"}
