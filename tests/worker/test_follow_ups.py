"""Follow-ups that cannot be stored, or not yet: others' outcomes are written all the same."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Fail, Job, JobFailed, NewJob, Runner, StaleClaim, State, Worker
from hybrid_runner.errors import KeyHeld
from hybrid_runner.model.settlements import Finished, Repeated
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages.health import checks_of
from hybrid_runner.worker.settle.settler import Settler
from tests.support import inside
from tests.support.jobs import enqueue
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working
from tests.worker.test_settler import Table, claim, run

pytestmark = pytest.mark.usefixtures("quick_tries")

POLL = NewJob("poll", key="poll-7")


@pytest.fixture
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.make_refusals_short(monkeypatch, 0.02, 0.1)


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[tuple[Runner, Worker]]:
    app = runner(dsn)

    @app.job("run")
    async def start(key: str) -> str | Fail:
        return Fail("look at it again", then=NewJob("poll", key=key)) if key else "plain"

    async with working(app, {"default": 50}) as worker:
        yield app, worker


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_an_outcome_waits_for_the_key_of_its_follow_up_and_no_other_does(
    ends: str, dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B2"""
    async with a_worker(dsn) as (app, worker):
        transaction = database.transaction()
        await transaction.start()
        await enqueue(database, kind="poll", key="poll-7")
        held = await app.enqueue("run", "poll-7")
        others = [await app.enqueue("run", key) for key in ("", "poll-8", "", "poll-9")]
        for handle in others:
            await until(handle.get, lambda job: job.state.final)
        await until(lambda: worker.status().pending_settlements == 1)
        [check] = [c for c in checks_of(worker.status()) if c.name == "settling"]
        assert "the key of a follow-up is in a transaction that is still open" in check.reason
        assert (await held.get()).state is State.RUNNING
        await (transaction.commit() if ends == "commit" else transaction.rollback())
        await until(held.get, lambda job: job.state is State.FAILED)
        ended = await held.get()
    polls = "SELECT count(*) FROM hybrid_runner.jobs WHERE key = 'poll-7'"
    await until_fetched(database, polls, 1)
    assert ended.attempt == 1
    assert (ended.followed_by is None) == (ends == "commit")  # then somebody else's stands for it
    events = [getattr(record, "event", "") for record in caplog.records]
    assert events.count("job.outcome_set_aside") == 1


async def test_many_held_outcomes_hold_up_the_others_for_a_bounded_time(
    dsn: str, database: Connection
) -> None:
    """Whoever may enqueue can hold as many keys as there are."""
    async with a_worker(dsn) as (app, worker):
        transaction = database.transaction()
        await transaction.start()
        for number in range(40):
            await enqueue(database, kind="poll", key=f"poll-{number}")
        held = await app.enqueue_many("run", [f"poll-{number}" for number in range(40)])
        await until(lambda: worker.status().pending_settlements == 40)
        handle = await app.enqueue("run", "")
        assert await handle.wait(120) == "plain"
        assert await (await app.enqueue("run", "")).wait(120) == "plain"
        await transaction.rollback()
        await until(lambda: worker.status().pending_settlements == 0)
        states = [(await app.handle(job.id).get()).state for job in held]
    assert set(states) == {State.FAILED}
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 40


async def test_of_a_batch_in_which_a_key_is_held_all_others_are_written_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    written: list[int] = []
    held = {3, 5}

    async def finish(batch: Sequence[Finished]) -> set[int]:
        if any(f.claim.id in held for f in batch):
            raise KeyHeld("held")
        written.extend(f.claim.id for f in batch)
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    for number in range(8):
        follow_ups = (POLL,) if number % 2 else ()
        settler.settle(Finished(claim(number), State.COMPLETED, follow_ups=follow_ups))
    task = asyncio.create_task(run(settler))
    await until(lambda: len(written) == 6)
    await until(lambda: settler.refused == 2)
    assert settler.pending == 2
    held.clear()
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    assert sorted(written) == list(range(8))
    assert written[:4] == [0, 2, 4, 6]  # those without follow-ups first


async def test_a_batch_has_a_bounded_number_of_follow_ups() -> None:
    """However small they are: each is a row, and other outcomes wait for the statement."""
    batches = list[int]()

    async def finish(batch: Sequence[Finished]) -> set[int]:
        batches.append(sum(len(f.follow_ups) for f in batch))
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    many = (NewJob("poll"),) * 1000
    for number in range(100):
        settler.settle(Finished(claim(number), State.COMPLETED, follow_ups=many))
    task = asyncio.create_task(run(settler))
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    assert sum(batches) == 100_000
    assert max(batches) <= 10_000


async def test_a_run_whose_follow_up_is_held_waits_alone_too() -> None:
    held, ended, repeated = {1}, list[int](), list[int]()

    class Runs(Table):
        async def repeat(self, batch: Sequence[Repeated]) -> set[int]:
            if any(s.claim.id in held for s in batch):
                raise KeyHeld("held")
            repeated.extend(s.claim.id for s in batch)
            return {s.claim.id for s in batch}

    async def finish(batch: Sequence[Finished]) -> set[int]:
        ended.extend(f.claim.id for f in batch)
        return {f.claim.id for f in batch}

    settler = Settler(Runs(finish))
    for number in range(3):
        settler.settle(Repeated(claim(number), timedelta(0), follow_ups=(POLL,)))
        settler.settle(Finished(claim(number + 10), State.COMPLETED, follow_ups=(POLL,)))
    task = asyncio.create_task(run(settler))
    await until(lambda: settler.refused == 1)
    assert (sorted(repeated), sorted(ended)) == ([0, 2], [10, 11, 12])
    held.clear()
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    assert sorted(repeated) == [0, 1, 2]


@pytest.mark.parametrize(("leaving", "statements"), [(0, 1), (1, 2), (7, 2), (8, 1)])
async def test_a_batch_takes_one_more_statement_if_some_of_it_leave_follow_ups(
    leaving: int, statements: int
) -> None:
    sent: list[int] = []

    async def finish(batch: Sequence[Finished]) -> set[int]:
        sent.append(len(batch))
        return {f.claim.id for f in batch}

    settler = Settler(Table(finish))
    for number in range(8):
        follow_ups = (POLL,) if number < leaving else ()
        settler.settle(Finished(claim(number), State.COMPLETED, follow_ups=follow_ups))
    task = asyncio.create_task(run(settler))
    await asyncio.wait_for(settler.drained(), 120)
    task.cancel()
    assert (len(sent), sum(sent)) == (statements, 8)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (NewJob("poll", json.dumps("x" * 1048576)), "the most is 1,048,576"),
        (NewJob("poll", json.dumps([1e300] * 4000)), "payload is at most 1 mib as text"),
        (NewJob("poll", data="{"), "the data is not JSON"),
        (NewJob("poll", data='"\ud800"'), "the data is not JSON"),
        (NewJob("poll", '"\\u0000"'), "NUL"),
        (NewJob("no kind"), "is not a kind"),
        (NewJob("poll", traceparent="x" * 300), "its traceparent is none of W3C's"),
    ],
)
async def test_a_follow_up_that_cannot_be_stored_fails_its_job_and_says_why(
    job: NewJob, why: str, dsn: str, database: Connection
) -> None:
    """It is one line, and what ends beside it is written."""
    app = runner(dsn)

    @app.job("run")
    async def start(says: str) -> str | Fail:
        return Fail("look at it again", then=job) if says else "plain"

    async with working(app) as worker:
        bad, good = [await app.enqueue("run", says) for says in ("bad", "")]
        assert await good.wait(120) == "plain"
        with pytest.raises(JobFailed, match=why) as failure:
            await bad.wait(120)
        await worker.idle()
    assert failure.value.error_type == "OutcomeRefused"
    assert "\n" not in failure.value.message
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_in_a_users_transaction_follow_ups_share_its_fate(
    ends: str, dsn: str, database: Connection
) -> None:
    """B1: and what is said afterwards is refused, since it would be lost."""
    app = runner(dsn)
    refused: list[str] = []

    @app.job("run", on_end="clean-up", max_attempts=1)
    async def start(_: Any, job: Job) -> None:
        job.then("poll", {}, key="poll-7")
        connection = await asyncpg.connect(dsn)
        transaction = connection.transaction()
        await transaction.start()
        await job.complete(connection=connection)
        with pytest.raises(StaleClaim, match="say what follows before that") as refusal:
            job.then("poll", {}, key="poll-8")
        refused.append(str(refusal.value))
        await (transaction.commit() if ends == "commit" else transaction.rollback())
        await connection.close()
        if ends == "rollback":
            raise OSError("no commit")

    async with working(app) as worker:
        handle = await app.enqueue("run", {})
        await until(handle.get, lambda job: job.state.final)
        await worker.idle()
        job = await handle.get()
    stored = await database.fetch("SELECT id, kind FROM hybrid_runner.jobs ORDER BY id")
    kinds = [row["kind"] for row in stored]
    assert kinds == (["poll", "clean-up"] if ends == "commit" else ["clean-up"])
    assert job.followed_by == [row["id"] for row in stored]
    assert len(refused) == 1


async def test_a_held_key_refuses_the_completion_in_a_users_transaction(
    dsn: str, database: Connection
) -> None:
    """Nothing has ended; the handler is told in one line."""
    app = runner(dsn)

    @app.job("run", max_attempts=1)
    async def start(_: Any, job: Job) -> None:
        job.then("poll", {}, key="poll-7")
        connection = await asyncpg.connect(dsn)
        try:
            await job.complete(connection=connection)
        finally:
            await connection.close()

    async with working(app):
        transaction = database.transaction()
        await transaction.start()
        await enqueue(database, kind="poll", key="poll-7")
        handle = await app.enqueue("run", {})
        with pytest.raises(JobFailed, match=r"KeyHeld: .* is in a transaction that is still open"):
            await handle.wait(120)
        await transaction.rollback()
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
