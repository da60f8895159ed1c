"""Workers that are killed while they write what their jobs leave behind: real processes."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

from hybrid_runner.storage.connections.connection import Connection
from tests.behaviour.test_lost_workers import LEASE
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.waiting import until_fetched

JOBS = 400
KILLS = 8


async def start(stack: AsyncExitStack, dsn: str) -> WorkerProcess:
    """A process that hears rings."""
    process = await stack.enter_async_context(
        worker(
            "tests.behaviour.ends_app:app",
            cwd=ROOT,
            HYBRID_RUNNER_DSN=dsn,
            HYBRID_RUNNER_LEASE=str(LEASE),
            HYBRID_RUNNER_SLOTS="20",
        )
    )
    await process.says("listening on")
    return process


async def test_whatever_is_killed_each_end_has_its_follow_ups_once(
    dsn: str, database: Connection
) -> None:
    """B1, B11, B16: SIGKILL at random moments of the settle, which a trigger makes longer."""
    await database.execute(
        """
        CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.kind = 'poll' THEN PERFORM pg_sleep(0.005); END IF;
            RETURN NEW;
        END
        $$;
        CREATE TRIGGER dawdle BEFORE INSERT ON hybrid_runner.jobs
        FOR EACH ROW EXECUTE FUNCTION public.dawdle()
        """
    )
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, payload) "
        "SELECT 'start', to_jsonb(n) FROM generate_series(1, $1::int) AS n",
        JOBS,
    )
    chance = random.Random(7)
    ended = "SELECT count(*) FROM hybrid_runner.archive WHERE kind = 'start'"
    async with AsyncExitStack() as stack:
        for kill in range(KILLS):
            doomed = await start(stack, dsn)
            goal = (kill + 1) * JOBS // (2 * KILLS) + chance.randrange(10)
            await until_fetched(database, f"SELECT ({ended}) >= {goal}", True)
            doomed.process.kill()
            await doomed.process.wait()
        await start(stack, dsn)
        await until_fetched(database, ended, JOBS)
    followers = await database.fetch(
        """
        SELECT j.kind, count(*) AS jobs,
            CASE j.kind WHEN 'poll' THEN j.payload ELSE j.payload -> 'payload' END AS run
        FROM hybrid_runner.jobs AS j GROUP BY 1, 3
        """
    )
    assert {(row["kind"], int(row["run"])): row["jobs"] for row in followers} == {
        (kind, run): 1 for kind in ("poll", "clean-up") for run in range(1, JOBS + 1)
    }
    assert (
        await database.fetchval(
            """
        SELECT count(*) FROM hybrid_runner.archive AS a
        WHERE a.followed_by = ARRAY(
            SELECT j.id FROM hybrid_runner.jobs AS j
            WHERE a.payload IN (j.payload, j.payload -> 'payload') ORDER BY j.id
        )
        """
        )
        == JOBS
    )
    lost = "SELECT count(*) FROM hybrid_runner.archive WHERE kind = 'start' AND attempt > 1"
    assert await database.fetchval(lost) > 0  # something was running when it was killed
