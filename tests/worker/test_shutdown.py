import asyncio

from hybrid_runner import Job, State
from hybrid_runner.storage.connections.connection import Connection
from tests.support.working import runner, working


async def test_a_stop_waits_for_running_jobs_and_leaves_no_trace_of_the_worker(
    dsn: str, database: Connection
) -> None:
    """A13"""
    app = runner(dsn)
    started = asyncio.Event()

    @app.job("brief")
    async def brief(payload: dict[str, int]) -> str:
        started.set()
        await asyncio.sleep(0.1)
        return "done"

    async with working(app):
        handle = await app.enqueue(brief, {})
        await started.wait()
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 1
    assert (
        await database.fetchval("SELECT state FROM hybrid_runner.all_jobs WHERE id = $1", handle.id)
        == "completed"
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0


async def test_jobs_that_outlast_the_grace_go_back_uncharged_and_due_at_once(
    dsn: str, database: Connection
) -> None:
    """It ends at all: the handler never would."""
    app = runner(dsn, grace="100ms")
    started = asyncio.Event()

    @app.job("long")
    async def long(payload: dict[str, int], job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cleaning up went wrong")

    async with working(app):
        handle = await app.enqueue(long, {})
        await started.wait()
    row = await database.fetchrow(
        "SELECT state, attempt, claim, errors, run_at <= now() AS due FROM hybrid_runner.jobs WHERE"
        " id = $1",
        handle.id,
    )
    assert row is not None
    assert (row["state"], row["attempt"], row["claim"], row["errors"], row["due"]) == (
        "queued",
        0,
        None,
        None,
        True,
    )


async def test_a_claim_on_its_way_when_the_stop_comes_is_not_lost(
    dsn: str, database: Connection
) -> None:
    """Stopped again and again in the middle of a drain, nothing is left running and nothing is
    lost.
    """
    ran: list[int] = []
    for _ in range(5):
        app = runner(dsn)

        @app.job("note")
        async def note(payload: dict[str, int], job: Job) -> None:
            ran.append(job.id)

        async with working(app) as worker:
            await app.enqueue_many(note, [{} for _ in range(200)])
            await worker.settled(20)
        assert (
            await database.fetchval(
                "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'"
            )
            == 0
        )
    app = runner(dsn)
    app.registry.add(note)
    async with working(app) as worker:
        while await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs"):
            await worker.idle()
    assert len(ran) == len(set(ran)) == 1000
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.archive WHERE state = $1", State.COMPLETED
        )
        == 1000
    )
