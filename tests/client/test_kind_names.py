"""Kinds that are named where their code is not at hand."""

from __future__ import annotations

import json

import asyncpg
import pytest

from hybrid_runner import NewJob, Runner
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import hybrid_runner
from tests.support.working import runner, working

QUEUES = "SELECT queue FROM hybrid_runner.jobs ORDER BY id"
SAID = "no worker has a handler for kind 'thumbnial': did you mean 'thumbnail'?"


@pytest.fixture
async def declared(database: Connection) -> Connection:
    await kind_calls.declare_kinds(database, [DeclaredKind("thumbnail", "images")])
    return database


async def queues(database: Connection) -> list[str]:
    return [row[0] for row in await database.fetch(QUEUES)]


async def test_jobs_by_name_wait_in_the_queue_of_their_handler(
    dsn: str, declared: Connection
) -> None:
    """B17: one, many, with keys, NewJobs, and in a transaction of the caller's."""
    async with Runner(dsn) as app:
        await app.enqueue("thumbnail")
        await app.enqueue_many("thumbnail", [1, 2])
        await app.enqueue_many("thumbnail", [1, 2], key=str)
        await app.enqueue_many("unknown", [NewJob("thumbnail"), NewJob("unknown"), 7])
        await app.enqueue_many("thumbnail", [1], queue="mine")
        mine = await asyncpg.connect(dsn)
        async with mine.transaction():
            await app.enqueue("thumbnail", connection=mine)
            await app.enqueue_many("thumbnail", [1], connection=mine)
        await mine.close()
    assert await queues(declared) == [
        *["images"] * 6,
        "default",
        "default",
        "mine",
        "images",
        "images",
    ]


async def test_a_producer_of_the_producer_role_finds_the_queue_too(
    dsn: str, declared: Connection
) -> None:
    """F5, B17"""
    mine = await asyncpg.connect(dsn)
    await mine.execute("SET ROLE hybrid_runner_producer")
    app = Runner(dsn)
    await app.enqueue("thumbnail", connection=mine)
    await app.enqueue_many("thumbnail", [1], connection=mine)
    await mine.close()
    await app.close()
    assert await queues(declared) == ["images", "images"]


async def test_the_code_that_is_at_hand_says_the_queue_itself(
    dsn: str, declared: Connection
) -> None:
    """B18: a producer that was deployed before its workers, or after."""
    app = runner(dsn)

    @app.job("thumbnail", queue="new-images")
    async def thumbnail(_payload: object) -> None: ...

    async with app:
        await app.enqueue(thumbnail, {})
        await app.enqueue("thumbnail", {})
    assert await queues(declared) == ["new-images", "new-images"]


@pytest.mark.usefixtures("declared")
async def test_a_likely_typo_is_logged_once(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """B17: and stored all the same."""
    async with Runner(dsn) as app:
        for _ in range(3):
            assert (await app.enqueue("thumbnial", {}, queue="images")).enqueued == "inserted"
        assert [line.message for line in caplog.records] == [SAID]
        await app.enqueue_many("thumbnial", [1])
        await app.enqueue("report")
        await app.enqueue("thumbnail")
        assert [line.message for line in caplog.records] == [SAID]
        assert caplog.records[0].__dict__["kind"] == "thumbnial"


@pytest.mark.usefixtures("declared")
async def test_a_likely_typo_in_a_bulk_is_logged(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B17"""
    async with Runner(dsn) as app:
        await app.enqueue_many("thumbnail", [NewJob("thumbnial"), NewJob("thumbnial")])
    assert [line.message for line in caplog.records] == [SAID]


@pytest.mark.usefixtures("declared")
def test_the_command_warns_of_a_likely_typo_and_enqueues(dsn: str) -> None:
    """B17"""
    ended = hybrid_runner("enqueue", "thumbnial", "--json", "--dsn", dsn)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["enqueued"] == "inserted"
    assert SAID in ended.stderr
    quiet = hybrid_runner("enqueue", "thumbnial", "--log-level", "error", "--dsn", dsn)
    assert (quiet.returncode, quiet.stderr) == (0, "")


async def test_one_job_by_name_is_one_statement(dsn: str, declared: Connection) -> None:
    """Where it goes is looked up by that statement itself."""
    app = Runner(dsn)
    mine = await asyncpg.connect(dsn)
    sent: list[str] = []
    mine.add_query_logger(lambda logged: sent.append(logged.query))
    await app.enqueue("thumbnail", connection=mine)
    await mine.close()
    assert [text.split(":")[0] for text in sent if "hybrid_runner" in text] == ["-- enqueue_job"]
    await app.close()
    assert await queues(declared) == ["images"]


async def test_a_worker_runs_what_was_put_in_by_name_alone(dsn: str) -> None:
    """B17: end to end, with a handler in a queue of its own."""
    app = runner(dsn)

    @app.job("thumbnail", queue="images")
    async def thumbnail(payload: int) -> int:
        return payload * 2

    async with working(app), Runner(dsn) as producer:
        handle = await producer.enqueue("thumbnail", 21)
        assert await handle.wait(120) == 42
