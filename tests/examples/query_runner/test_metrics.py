"""B14: what the query runner's polls do is counted, without a line of its own for it."""

from __future__ import annotations

import asyncio

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import Instrument
from tests.examples.query_runner.conftest import MakeSystem, System

POLL = "poll-shell-query"


async def test_probes_checks_confirmations_tries_and_endings_are_counted(
    make_system: MakeSystem, database: Connection
) -> None:
    """B14"""
    system: System = await make_system(faster=20)
    scripts = ["late status", "only a hint", "never there"]
    async with system.working() as worker:

        def counted(instrument: Instrument, *labels: str) -> float:
            value = worker.status().metric_values[instrument.name][POLL, *labels]
            assert isinstance(value, (int, float))
            return value

        assert counted(table.GATE_ENDINGS, "probe") == 0
        assert counted(table.TRIES, "rows", "used_up") == 0
        runs = [await system.start(script) for script in scripts]
        await asyncio.gather(*(system.over(run) for run in runs))
        await worker.idle()
        # On a machine that is slow the other run, too, may end at a look that the probe opened.
        assert counted(table.GATE_ENDINGS, "probe") in (1, 2)
        assert counted(table.GATES_OPENED, "probe") >= 1
        assert counted(table.GATES_OPENED, "hinted") >= 1
        assert counted(table.CONFIRMATIONS, "idle", "confirmed") <= 1
        assert counted(table.CONFIRMATIONS, "idle", "seen") >= 1
        assert counted(table.TRIES, "rows", "again") >= 6
        assert counted(table.TRIES, "rows", "used_up") == 1
        [polled] = [
            value
            for labels, value in worker.status().metric_values[table.SNOOZES.name].items()
            if labels[1] == POLL
        ]
    assert polled == await database.fetchval(
        "SELECT sum(snoozes) FROM hybrid_runner.archive WHERE kind = $1", POLL
    )
