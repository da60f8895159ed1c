"""The doorbell under disorder: no committed job waits for the fallback poll, whatever producers and
workers do.

A wake-up that is lost once shows: after each series of inserts there is silence, so nobody else
would find the job by chance, and both the fallback poll and (but for the test of a death) the
heartbeat are minutes away.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import Worker
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.stress import STYLES, Series, add_nap, producing
from tests.support.waiting import at_least, until
from tests.support.working import runner

pytestmark = pytest.mark.alone
ROOT = Path(__file__).resolve().parents[2]
FAR = "5m"
SETTINGS: dict[str, Any] = {
    "poll_base": FAR,
    "poll_cap": FAR,
    "hybrid_poll_base": FAR,
    "hybrid_poll_cap": FAR,
    "heartbeat": FAR,
    "lease": "1h",
    "doorbell_rate": 30,
}
SLOTS = 3
ROUNDS = 10
PROCESS = "in-a-process"
BOUND = timedelta(seconds=30)
"""Far longer than anything takes that works, far shorter than what finds a job that was lost."""
BELL = "SELECT pg_sequence_last_value(doorbell) FROM hybrid_runner.queues WHERE name = 'default'"
IS_MUTED = f"SELECT ({BELL}) > extract(epoch FROM clock_timestamp()) * 1000 + 150"
SLEEPERS = "SELECT count(*) FROM hybrid_runner.sleepers WHERE is_asleep"
UNFINISHED = (
    "SELECT id FROM hybrid_runner.jobs WHERE kind = 'nap' AND worker_id IS DISTINCT FROM $1"
)
WAITED = """
SELECT a.started_at - s.startable AS waited
FROM hybrid_runner.archive AS a
JOIN unnest($1::bigint[], $2::timestamptz[]) AS s (id, startable) ON a.id = s.id
WHERE a.state = 'completed'
"""


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("HYBRID_RUNNER_TEST_SEED") or random.randrange(1 << 32))


@dataclass
class Fleet:
    """Two workers in this process and one in its own. The first can be filled: it alone knows the
    kind `hold`.
    """

    here: list[Worker]
    elsewhere: subprocess.Popen[bytes]

    def fill_the_first(self) -> None:
        """As if it ran as many jobs as it may; all of them know the same kinds, so jobs could not
        choose it.
        """
        inside.fill(self.here[0], SLOTS, Reason.RING)

    def free_the_first(self) -> None:
        inside.free(self.here[0], SLOTS)


@contextmanager
def a_process(dsn: str, settings: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    named = {f"HYBRID_RUNNER_{name.upper()}": str(value) for name, value in settings.items()}
    environment = (
        os.environ
        | named
        | {
            "HYBRID_RUNNER_DSN": dsn,
            "WORKER_ID": PROCESS,
            "HYBRID_RUNNER_LOG_LEVEL": "warning",
        }
    )
    command = [
        sys.executable,
        "-m",
        "hybrid_runner",
        "worker",
        "tests.support.stress:app",
        "--queue",
        f"default={SLOTS}",
    ]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def fleet(
    dsn: str,
    database: Connection,
    here: dict[str, Any] = SETTINGS,
    elsewhere: dict[str, Any] = SETTINGS,
) -> AsyncIterator[Fleet]:
    first, second = runner(dsn, **here), runner(dsn, **here)
    for app in (first, second):
        add_nap(app)

    async with AsyncExitStack() as stack:
        process = stack.enter_context(a_process(dsn, elsewhere))
        workers = []
        for app in (first, second):
            await stack.enter_async_context(app)
            workers.append(await stack.enter_async_context(app.worker({"default": SLOTS})))
        await until(lambda: database.fetchval(SLEEPERS), at_least(3))
        await until(lambda: not any(inside.kinds_differ(worker) for worker in workers))
        yield Fleet(workers, process)


async def left_behind(database: Connection, but_for: str = "nobody") -> list[int]:
    """Wait until all jobs have ended, but for those of a dead worker; the ids of those that have
    not when it took too long.
    """
    try:
        async with asyncio.timeout(BOUND.total_seconds()):
            while await database.fetchval(f"SELECT EXISTS ({UNFINISHED})", but_for):
                await asyncio.sleep(0.01)
    except TimeoutError:
        return [row["id"] for row in await database.fetch(UNFINISHED, but_for)]
    return []


def modes(fleet: Fleet) -> list[str]:
    return [worker.status().queues[0].mode for worker in fleet.here]


def found(fleet: Fleet, way: str) -> int:
    return sum(worker.status().queues[0].found.get(way, 0) for worker in fleet.here)


async def check_waits(
    database: Connection, startable: dict[int, datetime], missing: int = 0
) -> None:
    """Every job ran, and soon after it could."""
    waited = [
        row["waited"]
        for row in await database.fetch(WAITED, list(startable), list(startable.values()))
    ]
    assert len(waited) + missing == len(startable)
    assert max(waited) < BOUND


async def test_no_job_is_left_behind_by_workers_that_wake_fill_up_and_fall_asleep(
    dsn: str, database: Connection, seed: int
) -> None:
    chance = random.Random(seed)
    async with fleet(dsn, database) as workers, producing(dsn, chance) as producers:
        for style in chance.sample(STYLES * ROUNDS, ROUNDS):
            first_is_full = chance.random() < 0.4
            if first_is_full:
                workers.fill_the_first()
            await producers.insert(*style.series)
            left = await left_behind(database)
            assert not left, (
                f"seed {seed}, {style.name}, the first is full: {first_is_full}, modes"
                f" {modes(workers)}: {left}"
            )
            if first_is_full:
                workers.free_the_first()
        await check_waits(database, producers.startable)
        assert found(workers, "sweep") == found(workers, "expired") == 0
        assert not any(worker.status().queues[0].polls for worker in workers.here)


async def test_jobs_that_a_killed_worker_kept_quiet_wait_for_a_heartbeat_at_most(
    dsn: str, database: Connection, seed: int
) -> None:
    """The jobs that it was running are left to the rescue."""
    chance = random.Random(seed)
    settings = SETTINGS | {"heartbeat": "1s"}
    # the process alone is ever awake: it holds the mute, and the others sleep under it
    async with fleet(
        dsn, database, settings | {"doorbell_rate": 1e6}, settings | {"doorbell_rate": 1}
    ) as workers:
        async with producing(dsn, chance) as producers:
            async with asyncio.timeout(120):
                while not (set(modes(workers)) == {"asleep"} and await database.fetchval(IS_MUTED)):
                    await producers.insert(Series(5, pause=0.03))
            workers.elsewhere.kill()
            workers.elsewhere.wait()
            await producers.insert(Series(5, held=0.8))
            left = await left_behind(database, but_for=PROCESS)
            assert not left, f"seed {seed}, modes {modes(workers)}: {left}"
            theirs = await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
            await check_waits(database, producers.startable, missing=theirs)
        assert not any(worker.status().queues[0].polls for worker in workers.here)
