"""Memories that are saved in the middle of an attempt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Job, StaleClaim, State
from hybrid_runner.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    RowLocked,
    RunnerError,
    ValueRefused,
)
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.run.saves import Saves
from tests.cli.running import ROOT
from tests.cli.running import worker as worker_process
from tests.support import inside
from tests.support.waiting import until, until_fetched
from tests.support.working import outcome, runner, working
from tests.worker import memory_handlers
from tests.worker.memory_handlers import AT_ONCE, Seen
from tests.worker.test_settler import claim

Batch = Sequence[tuple[int, int, str]]


@pytest.mark.parametrize("where", ["loop", "thread", "process"])
async def test_what_was_saved_is_there_after_the_attempt_has_failed(dsn: str, where: str) -> None:
    """B1, B16."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        job = await outcome(app, f"start_in_{where}")
    assert (job.result, job.data) == ("t1 in attempt 2", {"task": "t1"})


async def test_what_was_saved_is_there_after_its_process_was_killed(dsn: str) -> None:
    """B16: at the very next statement."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        job = await outcome(app, "start_in_process", "die")
    assert job.result == "t1 in attempt 2"


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_what_was_saved_is_there_after_the_worker_was_killed(
    dsn: str, database: Connection, where: str
) -> None:
    """B16: as soon as the row has it."""
    settings = {"HYBRID_RUNNER_DSN": dsn, "HYBRID_RUNNER_WORKER_ID": "memory"}
    async with worker_process("tests.worker.memory_handlers:app", cwd=ROOT, **settings) as doomed:
        await doomed.says("listening on")
        job_id = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, payload)"
            " VALUES ('save_and_hang', to_jsonb($1::text)) RETURNING id",
            where,
        )
        await until_fetched(
            database, "SELECT data->>'task' FROM hybrid_runner.jobs WHERE id = $1", where, job_id
        )
        doomed.process.kill()
        await doomed.process.wait()
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app, worker_id="memory"):
        assert await app.handle(job_id).wait(120) == f"{where} in attempt 2"


async def test_what_was_saved_is_in_the_row_while_the_handler_goes_on(
    dsn: str, database: Connection
) -> None:
    """B16."""
    app = runner(dsn)

    @app.job("row")
    async def row(_: Any, job: Job[Seen]) -> Any:
        job.data.looks = 3
        await job.save()
        return await database.fetchval("SELECT data FROM hybrid_runner.jobs")

    async with working(app):
        assert (await outcome(app, "row")).result == '{"looks": 3, "names": []}'


async def test_a_snooze_writes_nothing_of_what_was_saved_already(
    dsn: str, database: Connection
) -> None:
    """B3: what somebody wrote into the row after the save is kept, since nothing has changed."""
    app = runner(dsn)

    @app.job("saved", pace=memory_handlers.SOON)
    async def saved(_: Any, job: Job[Seen]) -> Any:
        if job.snoozes:
            return job.data.looks
        await job.save(Seen(looks=3))
        await database.execute("""UPDATE hybrid_runner.jobs SET data = '{"looks": 4}'""")
        return job.later()

    async with working(app):
        assert (await outcome(app, "saved")).result == 4


async def test_a_save_of_a_lost_claim_is_refused_and_writes_nothing(
    dsn: str, database: Connection
) -> None:
    """B16: by its number, not by its id."""
    app, said = runner(dsn, heartbeat=20, lease=60), list[str]()  # none sees the job taken away

    @app.job("stale", retry=AT_ONCE)
    async def stale(_: Any, job: Job) -> str | None:
        if job.attempt == 2:
            return "again"
        await database.execute("UPDATE hybrid_runner.jobs SET claim = claim + 1000000")
        try:
            await job.save({"never": "stored"})
        except StaleClaim as error:
            said.append(str(error))
        assert await database.fetchval("SELECT data FROM hybrid_runner.jobs") is None
        await database.execute("UPDATE hybrid_runner.jobs SET claim = claim - 1000000")
        return None

    async with working(app):
        job = await outcome(app, "stale")
    assert (job.state, job.data) == (State.COMPLETED, None)
    assert said == [f"job {job.id} no longer belongs to this attempt: stop working on it"]


async def test_what_cannot_be_stored_is_refused_at_the_call(dsn: str) -> None:
    """The handler can go on."""
    app = runner(dsn)

    @app.job("refused")
    async def refused(_: Any, job: Job[Any]) -> list[str]:
        said = []
        for data in ({"when": object()}, "x" * 2**20):
            with pytest.raises(ConfigurationError) as caught:
                await job.save(data)
            said.append(str(caught.value))
        with pytest.raises(ValueRefused):  # Postgres writes a space after each comma
            await job.save([1] * 500_000)
        return said

    @app.job("unfit")
    async def unfit(_: Any, job: Job[Seen]) -> str:
        with pytest.raises(ConfigurationError) as caught:
            await job.save({"looks": "many"})  # type: ignore[arg-type]
        return str(caught.value)

    async with working(app):
        first, second = (await outcome(app, "refused")).result
        assert "refused: the data cannot be written as JSON: Type is not JSON" in first
        assert "refused: the data has 1,048,578 bytes of JSON" in second
        said = (await outcome(app, "unfit")).result
        assert "unfit: the data does not fit Seen: looks: Input should be" in said


async def test_threads_of_a_handler_in_a_process_can_save(dsn: str) -> None:
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        job = await outcome(app, "save_from_threads", 20)
    assert (job.result, job.data["n"] in range(20)) == (0, True)


async def test_a_fork_of_a_handler_cannot_save(dsn: str) -> None:
    """It would read what the worker tells the handler."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        job = await outcome(app, "save_in_fork")
    assert job.result == (
        "job.save(…) was called in a fork: only the process of the handler can save"
    )


async def test_a_thread_that_outlives_its_attempt_in_a_process_can_save_nothing_more(
    dsn: str, tmp_path: Path
) -> None:
    """And its process goes on with the next attempt."""
    app, file = runner(dsn, memory_handlers.app.registry, process_slots=1), tmp_path / "said"
    async with working(app):
        assert (await outcome(app, "outlive", str(file))).state is State.COMPLETED
        await until(file.exists)
        assert "has ended: stop working on it" in file.read_text()
        assert (await outcome(app, "start_in_process")).result == "t1 in attempt 2"


async def test_a_save_waits_out_an_outage(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16: the handler may count on it."""
    inside.make_outages_short(monkeypatch)
    app = runner(dsn)

    @app.job("outage")
    async def during_an_outage(_: Any, job: Job) -> None:
        await job.save(1)
        await database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'hybrid-runner courtesies'"
        )
        await job.save(2)

    async with working(app):
        job = await outcome(app, "outage")
    assert (job.state, job.attempt, job.data) == (State.COMPLETED, 1, 2)


# --- many at a time, by the writer alone


class Table:
    """What a writer writes into, and what it meets there."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.stale: set[int] = set()
        self.locked: set[int] = set()
        self.errors: list[RunnerError] = []
        self.refused: set[str] = set()
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def write(self, batch: Batch) -> set[int]:
        await self.goes_on.wait()
        if self.errors:
            raise self.errors.pop(0)
        if self.locked & {job_id for job_id, _, _ in batch}:
            raise RowLocked("canceling statement due to lock timeout")
        if self.refused & {text for _, _, text in batch}:
            error = ValueRefused("invalid input syntax for type json")
            error.sqlstate = "22P02"
            raise error
        self.batches.append([text for _, _, text in batch])
        return {job_id for job_id, _, _ in batch} - self.stale

    async def find_locked(self, ids: Sequence[int]) -> set[int]:
        return self.locked & set(ids)


@asynccontextmanager
async def saving() -> AsyncIterator[tuple[Saves, Table]]:
    table = Table()
    saves = Saves(table.write, table.find_locked)
    loop = asyncio.create_task(saves.run())
    yield saves, table
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_memories_that_are_saved_meanwhile_are_one_statement() -> None:
    async with saving() as (saves, table):
        claims = [claim(n) for n in range(5)]
        table.goes_on.clear()
        first = asyncio.ensure_future(saves.save(claims[0], "first"))
        others = [asyncio.ensure_future(saves.save(each, f"{each.id}")) for each in claims]
        await asyncio.sleep(0)
        table.goes_on.set()
        await asyncio.gather(first, *others)
        assert [len(batch) for batch in table.batches] in ([5], [1, 5])
        assert [each.data for each in claims] == ["0", "1", "2", "3", "4"]


async def test_large_memories_are_written_a_few_at_a_time() -> None:
    """One statement has to hold them all."""
    async with saving() as (saves, table):
        claims, large = [claim(n) for n in range(5)], 3 * 1024 * 1024
        await asyncio.gather(*(saves.save(each, "x" * large) for each in claims))
        assert [len(batch) for batch in table.batches] == [2, 2, 1]


async def test_of_two_memories_of_one_attempt_the_newer_one_is_written_last() -> None:
    async with saving() as (saves, table):
        job = claim(1)
        table.goes_on.clear()
        first = asyncio.ensure_future(saves.save(job, "first"))
        await asyncio.sleep(0.001)
        second = asyncio.ensure_future(saves.save(job, "second"))
        third = asyncio.ensure_future(saves.save(job, "third"))
        await asyncio.sleep(0.001)
        table.goes_on.set()
        await asyncio.gather(first, second, third)
        assert (table.batches, job.data) == ([["first"], ["third"]], "third")


async def test_a_stale_claim_holds_up_no_other() -> None:
    async with saving() as (saves, table):
        table.stale = {1}
        good, stale = claim(2), claim(1)
        with pytest.raises(StaleClaim):
            await asyncio.gather(saves.save(stale, "no"), saves.save(good, "yes"))
        await until(lambda: good.data, lambda data: data == "yes")
        assert stale.data is None


async def test_a_memory_that_postgres_refuses_holds_up_no_other() -> None:
    async with saving() as (saves, table):
        table.refused = {"bad"}
        good, bad = claim(2), claim(1)
        said = await asyncio.gather(
            saves.save(bad, "bad"), saves.save(good, "yes"), return_exceptions=True
        )
        assert (type(said[0]), said[1]) == (ValueRefused, None)
        assert (good.data, bad.data) == ("yes", None)


async def test_a_row_that_somebody_else_has_locked_holds_up_no_other() -> None:
    """And a newer memory of the locked one is written in place of the older one."""
    async with saving() as (saves, table):
        table.locked = {1}
        good, locked = claim(2), claim(1)
        older = asyncio.ensure_future(saves.save(locked, "older"))
        await saves.save(good, "yes")
        newer = asyncio.ensure_future(saves.save(locked, "newer"))
        await asyncio.sleep(0.001)
        assert not older.done()
        table.locked = set()
        await asyncio.gather(older, newer)
        assert (locked.data, table.batches[-1]) == ("newer", ["newer"])


async def test_during_an_outage_memories_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.make_outages_short(monkeypatch)
    async with saving() as (saves, table):
        table.errors = [DatabaseUnavailable("no"), ConnectionLost("no")]
        await saves.save(job := claim(1), "text")
        assert (table.batches, job.data) == ([["text"]], "text")


async def test_a_thread_that_waits_is_told_that_the_worker_has_stopped() -> None:
    """Else the process could not end."""
    async with saving() as (saves, table):
        table.goes_on.clear()
        waits = asyncio.ensure_future(asyncio.to_thread(saves.save, claim(1), "text"))
        table.locked = {1}
        table.goes_on.set()
        await until(lambda: inside.saves_aside(saves))
        saves.close()
        with pytest.raises(DatabaseUnavailable, match="its worker has stopped"):
            await waits
        with pytest.raises(DatabaseUnavailable, match="its worker has stopped"):
            await asyncio.to_thread(saves.save, claim(2), "text")
