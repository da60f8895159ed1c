"""A worker that no ring reaches, its fallback poll minutes away: it still knows what it did
itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hybrid_runner import Job, Repeat, Snooze
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.waiting import equals, until
from tests.support.working import runner, working

DEAD_END: dict[str, Any] = {
    "listen_dsn": "postgresql://nobody@127.0.0.1:1/nowhere",
    "poll_base": "5m",
    "poll_cap": "5m",
}


async def test_a_deaf_worker_finds_at_its_start_what_is_there(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, **DEAD_END)

    @app.job("note")
    async def note(payload: dict[str, int]) -> None:
        pass

    await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')")
    async with working(app, deaf=True) as worker:
        await asyncio.wait_for(worker.settled(1), 120)


async def test_a_deaf_worker_takes_up_again_what_it_put_back(dsn: str) -> None:
    app = runner(dsn, **DEAD_END)

    @app.job("twice")
    async def twice(payload: dict[str, int], job: Job) -> Any:
        return Snooze(0.05, data=1) if job.data is None else None

    async with app:
        await app.enqueue(twice, {})
        async with app.worker() as worker:
            await asyncio.wait_for(worker.settled(1), 120)


async def test_a_deaf_worker_runs_again_what_it_repeats(dsn: str) -> None:
    app = runner(dsn, **DEAD_END)

    @app.job("thrice")
    async def thrice(payload: dict[str, int], job: Job) -> Any:
        seen = job.data or 0
        return Repeat(0.05, data=seen + 1) if seen < 2 else None

    async with app:
        await app.enqueue(thrice, {})
        async with app.worker() as worker:
            await asyncio.wait_for(worker.settled(3), 120)


async def test_outcomes_that_postgres_does_not_take_stop_the_claiming(dsn: str) -> None:
    """What is kept in memory is bounded by the slots."""
    app = runner(dsn)
    ran: list[int] = []
    taking = asyncio.Event()

    @app.job("note")
    async def note(payload: dict[str, int], job: Job) -> None:
        ran.append(job.id)

    async with working(app, {"default": 2}) as worker:

        def held(finish: inside.Call) -> inside.Call:
            async def finish_when_it_may(batch: Any) -> Any:
                await taking.wait()
                return await finish(batch)

            return finish_when_it_may

        inside.replace_finish(worker, held)
        await app.enqueue_many(note, [{} for _ in range(40)])
        # nothing runs and there is no room: it does not go on by itself
        await until(
            lambda: (worker.status().pending_settlements, worker.status().running), equals((4, 0))
        )
        await until(lambda: worker.status().queues[0].mode, equals("full"))
        assert len(ran) <= 8
        taking.set()
        await asyncio.wait_for(worker.settled(40), 120)
