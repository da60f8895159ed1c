"""A worker's memory is bounded, whatever its jobs carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import ROOT, worker
from tests.support.waiting import until_fetched

LIMIT = 512 * 1024
"""KiB: what deploy/kubernetes/workers.yaml gives a worker."""
INSERT = """
INSERT INTO hybrid_runner.jobs (kind, queue, payload)
SELECT kind, queue, p.payload
FROM (SELECT {} AS payload) AS p, generate_series(1, {}),
    (VALUES ('large', 'default'), ('large.elsewhere', 'elsewhere')) AS k (kind, queue)
"""
ENDED = "SELECT count(*) FROM hybrid_runner.archive"


@pytest.mark.parametrize(
    ("payload", "jobs"),
    [
        ("jsonb_build_object('a', repeat('x', 1000000))", 200),
        ("jsonb_build_object('a', '😀' || repeat('x', 1000000))", 200),
        ("(SELECT jsonb_agg(jsonb '[]') FROM generate_series(1, 250000))", 30),
        ("(SELECT jsonb_agg(1e131071) FROM generate_series(1, 7))", 200),
    ],
    ids=["plain text", "text with one wide letter", "many small values", "small in storage"],
)
async def test_two_queues_of_large_jobs_stay_below_the_shipped_limit(
    dsn: str, database: Connection, payload: str, jobs: int
) -> None:
    """All slots of both are taken; what does not fit into memory waits."""
    await database.execute(INSERT.format(payload, jobs))
    async with worker("tests.behaviour.large_app:app", cwd=ROOT, HYBRID_RUNNER_DSN=dsn) as process:
        await until_fetched(database, ENDED, 2 * jobs, patience=150)
        peak = peak_of(process.process.pid)
        assert await process.ends() == 0
    assert peak < LIMIT, f"{peak:,} KiB"


def peak_of(pid: int) -> int:
    """The most memory that the process ever had, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    [peak] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    return peak
