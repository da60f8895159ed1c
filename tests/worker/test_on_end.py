"""However a job ends, the kind that its own names as `on_end` runs, and is told how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from hybrid_runner import (
    Cancel,
    ConfigurationError,
    Ended,
    Fail,
    Job,
    JobHandle,
    Runner,
    Snooze,
    State,
    Worker,
)
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working


class Query(BaseModel):
    run: int


class Poll(BaseModel):
    looks: int = 0


Told = list[Ended[Query, Poll]]
End = Callable[[Runner, asyncio.Event], Awaitable[JobHandle[Any]]]


def said(says: str) -> Any:
    """What a handler does that ends, or is put back, at once."""
    match says:
        case "fail":
            return Fail("the query failed")
        case "cancel":
            raise Cancel("not needed")
        case "raise":
            raise OSError("cut off")
        case "object":
            return object()
        case "look again":
            return Snooze(0)
        case _:
            return {"rows": 7}


async def wait(runs: asyncio.Event) -> None:
    runs.set()
    await asyncio.Event().wait()


async def complete(job: Job, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await job.complete("by itself", connection=connection)
    await connection.close()


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[tuple[Runner, Worker, Told, asyncio.Event]]:
    """One whose kind `poll` does what its memory says."""
    app = runner(dsn)
    told: Told = []
    runs = asyncio.Event()

    @app.job("poll", max_attempts=1, max_snoozes=1, on_end="clean-up", queue="polls")
    async def poll(_: Query, job: Job) -> Any:
        match says := (job.data or {}).get("says", ""):
            case "wait":
                await wait(runs)
            case "snooze":
                runs.set()
                return Snooze(3600, data={"looks": 7})
            case "complete":
                await complete(job, dsn)
        return said(says)

    @app.job("clean-up", queue="cleaning")
    async def clean_up(end: Ended[Query, Poll]) -> None:
        told.append(end)

    async with working(app) as worker:
        yield app, worker, told, runs


def saying(says: str, **options: Any) -> End:
    async def end(app: Runner, _runs: asyncio.Event) -> JobHandle[Any]:
        return await app.enqueue("poll", {"run": 7}, data={"says": says}, **options)

    return end


async def cancelled_while_it_runs(app: Runner, runs: asyncio.Event) -> JobHandle[Any]:
    handle = await app.enqueue("poll", {"run": 7}, data={"says": "wait"})
    await runs.wait()
    assert await handle.cancel("enough") == "requested"
    return handle


async def cancelled_while_it_waits(app: Runner, runs: asyncio.Event) -> JobHandle[Any]:
    handle = await app.enqueue("poll", {"run": 7}, data={"says": "snooze"})
    await runs.wait()
    await until(handle.get, lambda job: job.state is State.QUEUED)
    assert await handle.cancel("enough") == "cancelled"
    return handle


async def cancelled_before_its_first_claim(app: Runner, _: asyncio.Event) -> JobHandle[Any]:
    handle = await app.enqueue("poll", {"run": 7}, delay="1h")
    assert await handle.cancel("enough") == "cancelled"
    return handle


async def expired(app: Runner, _: asyncio.Event) -> JobHandle[Any]:
    return await app.enqueue("poll", {"run": 7}, finish_by=datetime.now(UTC))


async def out_of_time(app: Runner, _: asyncio.Event) -> JobHandle[Any]:
    return await app.enqueue(
        "poll", {"run": 7}, data={"says": "wait"}, timeout=timedelta(milliseconds=50)
    )


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        (saying(""), State.COMPLETED, None),
        (saying("complete"), State.COMPLETED, None),
        (saying("fail"), State.FAILED, "the query failed"),
        (saying("raise"), State.FAILED, "cut off"),
        (saying("object"), State.FAILED, "the result"),
        (saying("cancel"), State.CANCELLED, "not needed"),
        (saying("look again"), State.FAILED, "max_snoozes (1) is used up"),
        (out_of_time, State.FAILED, "ran longer than its time-out"),
        (expired, State.FAILED, "finish_by"),
        (cancelled_while_it_runs, State.CANCELLED, "enough"),
        (cancelled_while_it_waits, State.CANCELLED, "enough"),
        (cancelled_before_its_first_claim, State.CANCELLED, "enough"),
    ],
)
async def test_however_a_job_ends_its_clean_up_runs_once_and_is_told(
    end: End, state: State, reason: str | None, dsn: str, database: Connection
) -> None:
    """B11"""
    async with a_worker(dsn) as (app, worker, told, runs):
        handle = await end(app, runs)
        await until(lambda: told)
        await worker.idle()
        job = await handle.get()
        clean_ups = [clean_up for clean_up in await app.list_jobs() if clean_up.kind == "clean-up"]
    [ended] = told
    assert (ended.id, ended.kind, ended.state) == (handle.id, "poll", state)
    assert (reason or "") in (ended.reason or "")
    assert (ended.reason is None) == (reason is None)
    assert ended.payload.run == 7
    assert ended.result == job.result
    assert job.state is state
    assert job.followed_by == [clean_up.id for clean_up in clean_ups]
    assert [clean_up.state for clean_up in clean_ups] == [State.COMPLETED]


async def test_a_clean_up_runs_though_the_payload_does_not_fit(dsn: str) -> None:
    """B11: it is told how the job ended, and why the payload cannot be read."""
    async with a_worker(dsn) as (_, worker, told, _):
        job = await Runner(dsn).enqueue("poll", {"run": "seven"}, data={"looks": "many"})
        await until(lambda: told)
        await worker.idle()
    [ended] = told
    assert (ended.id, ended.state, ended.data) == (job.id, State.FAILED, None)
    assert "the payload does not fit poll" in (ended.reason or "")
    with pytest.raises(ValueError, match=r"the payload of job \d+ \(poll\): run: Input should be"):
        _ = ended.payload


async def test_a_clean_up_that_fails_is_a_job_that_failed(dsn: str) -> None:
    """The end of the first job stands."""
    app = runner(dsn)

    @app.job("work", on_end="clean-up")
    async def work(_: Any) -> str:
        return "done"

    @app.job("clean-up", max_attempts=1)
    async def clean_up(end: Ended[Any, Any]) -> None:
        raise OSError("nobody there")

    async with working(app) as worker:
        handle = await app.enqueue("work", {})
        assert await handle.wait(120) == "done"
        await worker.idle()
        [after] = (await handle.get()).followed_by or ()
        failed = await app.get(after)
    assert failed is not None
    assert (failed.state, failed.errors[-1]["message"]) == (State.FAILED, "nobody there")


@pytest.mark.parametrize("how", ["returns", "completes it by itself"])
async def test_a_worker_with_older_code_that_starts_in_a_deploy_takes_no_clean_ups_away(
    how: str, dsn: str
) -> None:
    """B11, B18: not from what others end, though it writes down the kind without any."""
    app, before = runner(dsn), runner(dsn)

    @app.job("work", on_end="clean-up")
    async def work(_: Any, job: Job) -> None:
        if how != "returns":
            connection = await asyncpg.connect(dsn)
            await job.complete(connection=connection)
            await connection.close()

    @app.job("clean-up")
    async def clean_up(end: Ended[Any, Any]) -> None: ...

    @before.job("work", queue="another")
    async def older(_: Any) -> None: ...

    async with working(app), working(before, {"another": 1}):
        handle = await app.enqueue(work, {})
        await handle.wait(120)
        assert len((await handle.get()).followed_by or ()) == 1


async def test_a_clean_up_of_a_kind_that_nobody_knows_waits_for_a_worker_that_does(
    dsn: str, database: Connection
) -> None:
    """B17"""
    app = runner(dsn)

    @app.job("work", on_end="clean-up")
    async def work(_: Any) -> None: ...

    async with working(app):
        await (await app.enqueue("work", {})).wait(120)
        await until_fetched(
            database, "SELECT state::text FROM hybrid_runner.jobs WHERE kind = 'clean-up'", "queued"
        )


@pytest.mark.parametrize("kinds", [("a", "b"), ("a", "b", "c")])
def test_clean_ups_that_go_in_a_circle_are_refused(kinds: tuple[str, ...]) -> None:
    app = Runner("postgresql://nobody@127.0.0.1:1/nothing")
    *first, last = zip(kinds, (*kinds[1:], kinds[0]), strict=True)
    for name, after in first:
        app.job(name, on_end=after)(lambda _: None)
    way = " -> ".join([last[0], *kinds])
    with pytest.raises(
        ConfigurationError, match=rf"kind '{last[0]}': on_end goes in a circle \({way}\)"
    ):
        app.job(last[0], on_end=last[1])(lambda _: None)


async def test_a_worker_does_not_start_that_would_close_a_circle_with_kinds_of_others(
    dsn: str, database: Connection
) -> None:
    await database.execute(
        """
        INSERT INTO hybrid_runner.kinds (name, queue, on_end, seen_at) VALUES
        ('b', 'default', 'c', now()), ('c', 'default', 'a', now()),
        ('y', 'default', 'x', now() - interval '25 hours'), ('q', 'default', 'q', now())
        """
    )
    app = runner(dsn)
    app.job("a", on_end="b")(lambda _: None)
    app.job("x", on_end="y")(lambda _: None)  # whose other half nobody has any more
    with pytest.raises(
        ConfigurationError, match=r"kind 'a': on_end goes in a circle \(a -> b -> c -> a\)"
    ):
        async with working(app):
            pass
    declared = "SELECT count(*) FROM hybrid_runner.kinds WHERE name IN ('a', 'x')"
    assert await database.fetchval(declared) == 0
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0
    await database.execute("UPDATE hybrid_runner.kinds SET on_end = NULL WHERE name = 'c'")
    async with working(app):
        assert await database.fetchval(declared) == 2
