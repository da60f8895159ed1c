"""The memory of a job: typed, changed in place, kept by snoozes, and unfit after a deploy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from hybrid_runner import ConfigurationError, Fail, Job, NewJob, Snooze, State
from hybrid_runner.model.outcomes import Repeat
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.waiting.backoff import Backoff
from tests.support.waiting import until_fetched
from tests.support.working import outcome, runner, working
from tests.worker import memory_handlers
from tests.worker.memory_handlers import SOON, Seen, Task


class Strict(BaseModel):
    """A memory that is nothing else."""

    model_config = ConfigDict(extra="forbid")


class FirstSeen(BaseModel):
    """When something was seen first."""

    at: datetime = Field(default_factory=lambda: datetime.now(UTC))


EXECUTORS = ["loop", "thread", "process"]


@pytest.mark.parametrize("where", EXECUTORS)
async def test_what_a_handler_changes_in_its_memory_is_there_at_its_next_look(
    dsn: str, where: str
) -> None:
    """B2, B3: the same job, with a fresh memory at its first look."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        job = await outcome(app, f"look_in_{where}")
    assert job.result == {"looks": 3, "names": ["x", "xx", "xxx"], "snoozes": 2}
    assert (job.data, job.attempt) == ({"looks": 2, "names": ["x", "xx"]}, 1)


async def test_a_memory_that_was_read_and_not_changed_is_not_written(dsn: str) -> None:
    """B3: also where nothing was stored yet."""
    app = runner(dsn)

    @app.job("only_read", pace=SOON)
    async def only_read(_: Any, job: Job[Seen]) -> int | Snooze:
        assert job.data.looks in (0, 7)
        return job.later() if job.snoozes < 2 else job.snoozes

    async with working(app):
        fresh = await outcome(app, "only_read")
        given = await outcome(app, "only_read", data={"looks": 7, "more": "kept"})
    assert (fresh.result, fresh.data) == (2, None)
    assert given.data == {"looks": 7, "names": []}  # as enqueue has written it


async def test_a_default_that_is_another_one_each_time_is_stored_at_the_first_snooze(
    dsn: str,
) -> None:
    """B3: such as when something was first seen."""
    app = runner(dsn)

    @app.job("first", pace=SOON)
    async def first(_: Any, job: Job[FirstSeen]) -> Any:
        seen.append(job.data.at)
        return job.later() if job.snoozes < 2 else None

    seen = list[datetime]()
    async with working(app):
        await outcome(app, "first")
    assert len(seen) == 3
    assert len(set(seen)) == 1


async def test_rows_keep_what_a_model_does_not_know_until_it_is_changed(
    dsn: str, database: Connection
) -> None:
    """B3, B18: an older worker reads what a newer one wrote."""
    app = runner(dsn)

    @app.job("only_read", pace=SOON)
    async def only_read(_: Any, job: Job[Seen]) -> int | Snooze:
        return job.later() if job.snoozes < 2 else job.data.looks

    async with working(app):
        job_id = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, data) VALUES"
            """ ('only_read', '{"looks": 7, "newer": [1]}') RETURNING id"""
        )
        job = await app.handle(job_id).wait(120) and await app.get(job_id)
    assert job is not None
    assert (job.result, job.data) == (7, {"looks": 7, "newer": [1]})


async def test_a_memory_without_a_type_is_changed_in_place_or_replaced(dsn: str) -> None:
    """B3."""
    app = runner(dsn)

    @app.job("count", pace=SOON)
    async def count(_: Any, job: Job) -> Any:
        if job.data is None:
            job.data = {"n": [1]}
        elif len(job.data["n"]) < 3:
            job.data["n"].append(job.snoozes)
        else:
            return job.data
        return job.later()

    async with working(app):
        assert (await outcome(app, "count")).result == {"n": [1, 1, 2]}


async def test_a_snooze_with_data_stores_that_and_not_what_was_changed(dsn: str) -> None:
    """B3."""
    app = runner(dsn)

    @app.job("both")
    async def both(_: Any, job: Job[Seen]) -> Any:
        if job.snoozes:
            return job.data.looks
        job.data.looks = 5
        return Snooze(0.01, data=Seen(looks=9))

    async with working(app):
        assert (await outcome(app, "both")).result == 9


@pytest.mark.parametrize("where", ["loop", "process"])
async def test_the_data_of_a_snooze_is_written_as_its_type_says(dsn: str, where: str) -> None:
    """B3."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app):
        assert (await outcome(app, f"wait_in_{where}")).result == 90.0
    assert memory_handlers.LONGER.data.since == timedelta(seconds=90)


async def test_a_raised_snooze_keeps_what_was_changed_and_an_error_does_not(dsn: str) -> None:
    """B3, B16: after an error the next attempt finds the memory as it was last stored."""
    app = runner(dsn)

    @app.job("raise", pace=SOON, retry=memory_handlers.AT_ONCE)
    async def raises(_: Any, job: Job[Seen]) -> Any:
        job.data.looks += 1
        if job.data.looks == 1:
            raise job.later()
        if job.attempt == 1:
            raise RuntimeError("in the middle")
        return job.data.looks

    async with working(app):
        assert (await outcome(app, "raise")).result == 2


async def test_a_repeat_keeps_the_memory(dsn: str, database: Connection) -> None:
    """The next run has it."""
    app = runner(dsn)

    @app.job("again")
    async def again(_: Any, job: Job[Seen]) -> Any:
        job.data.looks += 1
        return Repeat(0.01) if job.data.looks < 3 else job.data.looks

    async with working(app):
        assert (await outcome(app, "again")).result == 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"looks": "many"}, "the data of Snooze does not fit Seen: looks: Input should be"),
        (Seen(names=["x" * 1024 * 1024]), "the data of Snooze has 1,048,"),
        (Task(task="t"), "the data of Snooze does not fit Seen"),
    ],
    ids=["unfit", "too large", "another model"],
)
async def test_data_that_cannot_be_the_memory_fails_the_job_and_names_the_field(
    dsn: str, wrong: Any, says: str
) -> None:
    """B3: another attempt would end the same way."""
    app = runner(dsn)

    @app.job("wrong")
    async def wrong_data(_: Any, job: Job[Seen]) -> Any:
        return Snooze(0.01, data=wrong)

    async with working(app):
        job = await outcome(app, "wrong")
    assert (job.state, job.errors[0]["type"], job.attempt) == (State.FAILED, "DataRefused", 1)
    assert says in job.errors[0]["message"]


async def test_a_memory_that_was_changed_into_what_does_not_fit_fails_the_job(dsn: str) -> None:
    """B3: models do not check what is assigned to their fields."""
    app = runner(dsn)

    @app.job("assign")
    async def assign(_: Any, job: Job[Seen]) -> Any:
        job.data.looks = "many"  # type: ignore[assignment]
        return job.later()

    async with working(app):
        job = await outcome(app, "assign")
    assert job.errors[0]["type"] == "DataRefused"
    assert "job.data does not fit Seen: looks: " in job.errors[0]["message"]


# --- without data, and with other data


async def test_a_job_without_the_data_that_it_needs_is_refused_by_every_way_of_making_one(
    dsn: str,
) -> None:
    app = runner(dsn)

    @app.job("needy")
    async def needy(_: Any, job: Job[Task]) -> str:
        return job.data.task

    @app.job("starter")
    async def starter(payload: str, job: Job) -> str | Fail:
        if payload == "fail":
            return Fail("no", then=NewJob("needy"))
        job.then(needy, {})
        return "started"

    says = "a job of needy needs data=…, a Task: task: Field required"
    async with working(app):
        for make in (
            lambda: app.enqueue(needy, {}),
            lambda: app.enqueue("needy"),
            lambda: app.enqueue_many(needy, [{}]),
            lambda: app.enqueue_many("starter", [NewJob("needy")]),
        ):
            with pytest.raises(ConfigurationError, match=says):
                await make()
        with pytest.raises(ConfigurationError, match=says):
            needy.new({})
        with pytest.raises(ConfigurationError, match="the data does not fit Task: looks: "):
            await app.enqueue(needy, {}, data={"task": "a", "looks": "b"})
        assert (await outcome(app, "needy", data=Task(task="t1"))).result == "t1"
        for payload in ("then", "fail"):
            job = await outcome(app, "starter", payload, max_attempts=1)
            assert (job.state, says in job.errors[0]["message"]) == (State.FAILED, True)


async def test_data_that_a_waiting_job_is_given_must_fit_its_handler(dsn: str) -> None:
    app = runner(dsn)

    @app.job("needy")
    async def needy(_: Any, job: Job[Task]) -> str:
        return job.data.task

    async with app:
        handle = await app.enqueue(needy, {}, data=Task(task="t1"))
        says = f"job {handle.id}: the data does not fit Task: task: Field required"
        with pytest.raises(ConfigurationError, match=says):
            await app.amend(handle.id, version=1, data={"tasks": 1})
        assert await app.amend(handle.id, version=1, data=Task(task="t2")) == "amended"
    async with working(app):
        assert await handle.wait(120) == "t2"


async def test_a_job_that_came_by_sql_without_its_data_fails_and_names_the_field(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)

    @app.job("needy", max_duration="1h")
    async def needy(_: Any, job: Job[Task]) -> str:
        return job.data.task

    async with working(app) as worker:
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('needy')")
        await worker.settled(1)
    error = await database.fetchval("SELECT errors->0 FROM hybrid_runner.archive")
    assert '"type": "DataRefused"' in error
    assert "the job has no data, and needs Task: task: Field required" in error


async def test_data_of_another_deploy_is_snoozed_by_pace_until_it_fits(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B18: the handler is not called meanwhile, and each look is a warning that names the field."""
    app, called = runner(dsn), list[str]()

    @app.job("changed", pace=Backoff(0.05, cap=0.05), max_duration="1h")
    async def changed(_: Any, job: Job[Task]) -> str:
        called.append(job.data.task)
        return f"{job.data.task} after {job.snoozes > 1}"

    async with working(app):
        job_id = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, data) VALUES"
            """ ('changed', '{"tasks": ["t1"]}') RETURNING id"""
        )
        await until_fetched(
            database,
            "SELECT errors->-1->>'message' FROM hybrid_runner.jobs WHERE snoozes > 1",
            "the job has data that does not fit Task: task: Field required",
        )
        assert called == []
        await database.execute(
            """UPDATE hybrid_runner.jobs SET data = '{"task": "t1"}' WHERE id = $1""", job_id
        )
        assert await app.handle(job_id).wait(120) == "t1 after True"
    assert "does not fit Task: task: Field required" in caplog.text


async def test_a_reason_that_names_what_the_data_has_is_short(
    dsn: str, database: Connection
) -> None:
    """Anybody who may insert can write a name of a mebibyte."""
    app = runner(dsn)

    @app.job("strict", pace=SOON, max_snoozes=0)
    async def strict(_: Any, job: Job[Strict]) -> None: ...

    async with working(app) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, data)"
            " VALUES ('strict', jsonb_build_object(repeat('x', 1000000), 1))"
        )
        await worker.settled(1)
    message = await database.fetchval("SELECT errors->-1->>'message' FROM hybrid_runner.archive")
    assert "the job has data that does not fit Strict: xxxxx" in message
    assert len(message) < 1200


async def test_data_that_does_not_fit_fails_the_job_once_its_budget_is_used_up(
    dsn: str, database: Connection
) -> None:
    """B5, B18."""
    app = runner(dsn)

    @app.job("changed", pace=SOON, max_snoozes=2)
    async def changed(_: Any, job: Job[Task]) -> None: ...

    async with working(app) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, data) VALUES ('changed', '[]')"
        )
        await worker.settled(1)
    message = await database.fetchval("SELECT errors->-1->>'message' FROM hybrid_runner.archive")
    assert message.startswith("max_snoozes (2) is used up after ")
    assert "the job has data that does not fit Task: data: Input should be" in message


# --- time


async def test_time_counts_from_the_first_attempt_and_across_waits(dsn: str) -> None:
    """B5: by the clock of Postgres."""
    app = runner(dsn)

    @app.job("clock", pace=SOON, max_duration="29m", finish_within="1h")
    async def clock(_: Any, job: Job[dict[str, Any]]) -> Any:
        job.data.setdefault("began", job.began_at.isoformat())
        assert job.elapsed >= timedelta(seconds=0.05) * job.snoozes
        assert job.left is not None
        if job.snoozes < 2:
            return job.later()
        assert job.elapsed + job.left <= timedelta(minutes=29)
        return [job.data["began"] == job.began_at.isoformat(), job.left.total_seconds() > 1700]

    @app.job("unbounded")
    async def unbounded(_: Any, job: Job) -> bool:
        return job.left is None

    async with working(app):
        assert (await outcome(app, "clock")).result == [True, True]
        assert (await outcome(app, "unbounded")).result is True


class Named(BaseModel):
    """A memory in which a value has a name of its own in JSON."""

    at: int = 0


async def test_the_memory_is_the_same_object_each_time(dsn: str) -> None:
    app = runner(dsn)

    @app.job("same")
    async def same(_: Any, job: Job[Named]) -> bool:
        return job.data is job.data

    async with working(app):
        assert (await outcome(app, "same")).result is True
