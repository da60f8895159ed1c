"""Jobs that wait for signals, in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import (
    ConfigurationError,
    Job,
    JobCancelled,
    JobFailed,
    Repeat,
    Runner,
    SignalRefused,
    Snooze,
)
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.waiting import until
from tests.support.working import runner, working
from tests.worker import signal_handlers

WAITING = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for IS NOT NULL"


async def waiting(database: Connection, count: int = 1) -> None:
    """So many jobs wait for signals, and their transactions have committed."""
    await until(lambda: database.fetchval(WAITING), lambda found: found == count)


def waits(app: Runner, timeout: str = "1h") -> asyncio.Queue[tuple[Any, bool]]:
    """A kind whose jobs wait for the key in their payload, and what they were given."""
    given: asyncio.Queue[tuple[Any, bool]] = asyncio.Queue()

    @app.job("wait")
    async def wait(payload: dict[str, str], job: Job) -> Any:
        if job.data is None:
            return Snooze(timeout, wake_on=payload["key"], data=1)
        given.put_nowait((job.signalled, job.timed_out))
        return job.signalled

    return given


async def test_a_signal_runs_the_job_that_waits_for_it(dsn: str, database: Connection) -> None:
    app = runner(dsn)
    given = waits(app)
    async with working(app) as worker:
        handle = await app.enqueue("wait", {"key": "approved:42"})
        await waiting(database)
        assert not worker.status().running
        await app.signal("approved:42", {"by": "eva"})
        assert await asyncio.wait_for(given.get(), 120) == ({"by": "eva"}, False)
        assert await handle.wait(timeout=120) == {"by": "eva"}


async def test_the_log_says_what_a_job_waits_for(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is in the key."""
    caplog.set_level("INFO")
    app = runner(dsn)
    waits(app)
    async with working(app):
        await app.enqueue("wait", {"key": "a\nb\x1b" + "c" * 400})
        await waiting(database)
        await until(lambda: [one for one in caplog.messages if "waits for signal" in one])
    [line] = [one for one in caplog.messages if "waits for signal" in one]
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith("c, for 3600.0 s at most")
    assert len(line) < 200


async def test_a_time_out_is_told_apart_from_a_payload_of_null(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    given = waits(app, "50ms")
    async with working(app):
        await app.enqueue("wait", {"key": "a"})
        assert await asyncio.wait_for(given.get(), 120) == (None, True)
    app = runner(dsn)
    given = waits(app)
    async with working(app):
        await app.enqueue("wait", {"key": "b"})
        await waiting(database)
        await app.signal("b")
        assert await asyncio.wait_for(given.get(), 120) == (None, False)


async def test_a_signal_counts_when_its_transaction_commits(
    dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    app = runner(dsn)
    given = waits(app)
    async with working(app):
        await app.enqueue("wait", {"key": "a"})
        await waiting(database)
        beside = await another()
        async with database.transaction():
            await app.signal("a", 1, connection=database)
            await app.enqueue("wait", {"key": "other"})
            await waiting(beside, 2)
            assert given.empty()
        assert await asyncio.wait_for(given.get(), 120) == (1, False)


async def test_signal_wakes_a_job_that_was_stored_before_its_commit(
    dsn: str, database: Connection
) -> None:
    """Its transaction was open when the job was stored, ran, and began to wait."""
    app = runner(dsn)
    sender = await connect(dsn)

    @app.job("ship", timeout="1h")
    async def ship(_: Any, job: Job) -> Any:
        return await job.signal("paid:1", timeout="1h")

    async with working(app):
        async with sender.transaction():
            await sender.execute("SELECT hybrid_runner.signal('paid:1', 'true')")
            handle = await app.enqueue("ship")
            await waiting(database)
        assert await handle.wait(timeout=120) is True
    await sender.close()


async def test_all_jobs_that_wait_for_a_key_get_it(dsn: str, database: Connection) -> None:
    app = runner(dsn)
    given = waits(app)
    async with working(app):
        await app.enqueue_many("wait", [{"key": "a"}] * 600)
        await waiting(database, 600)
        await app.signal("a", 1)
        for _ in range(600):
            assert await asyncio.wait_for(given.get(), 120) == (1, False)


# --- in the middle of a handler


class Packed(BaseModel):
    """What the warehouse says."""

    boxes: int


async def test_a_call_waits_without_a_slot_and_goes_on_with_the_payload(
    dsn: str, database: Connection
) -> None:
    """B1: one slot, and another job runs while this one waits."""
    app = runner(dsn)
    begun: list[int] = []

    @app.job("ship")
    async def ship(payload: dict[str, int], job: Job) -> int:
        begun.append(job.attempt)
        packed = await job.signal(f"packed:{payload['id']}", timeout="3d", type=Packed)
        assert packed is not None
        return packed.boxes

    @app.job("other")
    async def other(payload: dict[str, int]) -> str:
        return "ran"

    async with working(app, {"default": 1}) as worker:
        handle = await app.enqueue(ship, {"id": 42})
        await waiting(database)
        await worker.idle()
        assert await (await app.enqueue(other, {})).wait(timeout=120) == "ran"
        await app.signal("packed:42", {"boxes": 3})
        assert await handle.wait(timeout=120) == 3
    assert begun == [1, 1]


async def test_a_call_finds_a_signal_that_came_early_and_does_not_wait(dsn: str) -> None:
    app = runner(dsn)
    begun: list[int] = []

    @app.job("ship", queue="late")
    async def ship(payload: dict[str, int], job: Job) -> Any:
        begun.append(job.snoozes)
        return [await job.signal("a"), await job.signal("a"), job.timed_out]

    async with app:
        handle = await app.enqueue(ship, {})
        await app.signal("a", 1)
        await app.signal("a", 2)
        async with app.worker({"late": 1}):
            assert await handle.wait(timeout=120) == [1, 2, False]
    assert begun == [0]


async def test_several_calls_are_answered_in_turn_and_again_from_the_top(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    seen: list[list[Any]] = []

    @app.job("chain")
    async def chain(payload: dict[str, int], job: Job) -> Any:
        got: list[Any] = []
        seen.append(got)
        for key, timeout in (("a", None), ("never", "20ms"), ("a", None), ("b", "1h")):
            got.append((await job.signal(key, timeout=timeout), job.timed_out))
        return got

    async with working(app):
        handle = await app.enqueue(chain, {})
        await waiting(database)
        await app.signal("a", 1)
        await until(lambda: len(seen) >= 3)
        await waiting(database)
        await app.signal("a", 2)
        await until(lambda: len(seen) >= 4)
        await waiting(database)
        await app.signal("b", 3)
        expected = [[1, False], [None, True], [2, False], [3, False]]
        assert await handle.wait(timeout=120) == expected
    final = [(1, False), (None, True), (2, False), (3, False)]
    assert [final[: len(got)] for got in seen] == seen


async def test_the_memory_is_kept_as_it_was_when_the_handler_was_unwound(
    dsn: str, database: Connection
) -> None:
    """B3: without having been saved, and it is there again when the handler runs from its top."""
    app = runner(dsn)

    @app.job("note")
    async def note(payload: dict[str, int], job: Job) -> Any:
        job.data = [*(job.data or []), "begun"]
        return [await job.signal("k"), job.data]

    async with working(app):
        handle = await app.enqueue(note, {})
        await waiting(database)
        await app.signal("k", 1)
        assert await handle.wait(timeout=120) == [1, ["begun", "begun"]]


async def test_each_run_of_a_job_that_repeats_is_given_a_signal_of_its_own(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    given: asyncio.Queue[Any] = asyncio.Queue()

    @app.job("monitor")
    async def monitor(payload: dict[str, int], job: Job) -> Any:
        first = await job.signal("k")
        given.put_nowait([first, await job.signal("k")])
        return Repeat("10ms")

    async with working(app):
        await app.enqueue(monitor, {})
        await waiting(database)
        for number in range(6):
            await app.signal("k", number)
        for expected in ([0, 1], [2, 3], [4, 5]):
            assert await asyncio.wait_for(given.get(), 120) == expected


async def test_retry_of_a_waiting_job_runs_it_as_if_its_time_were_over(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    given = waits(app)
    async with working(app):
        handle = await app.enqueue("wait", {"key": "a"})
        await waiting(database)
        assert await app.retry(handle.id) == "queued"
        assert await asyncio.wait_for(given.get(), 120) == (None, True)


async def test_a_key_that_postgres_refuses_fails_the_job_and_holds_up_nothing(
    dsn: str, database: Connection
) -> None:
    """By a rule of an administrator's."""
    await database.execute(
        "ALTER TABLE hybrid_runner.jobs ADD CONSTRAINT ours CHECK (waits_for <> 'forbidden')"
    )
    app = runner(dsn)

    @app.job("wait")
    async def wait(payload: object) -> Snooze:
        return Snooze("1h", wake_on="forbidden")

    async with working(app):
        handle = await app.enqueue("wait", {})
        with pytest.raises(JobFailed, match="Postgres refused the outcome"):
            await handle.wait(timeout=120)


async def test_a_budget_ends_a_wait_that_has_no_time_out(dsn: str, database: Connection) -> None:
    """B5: woken by its deadline, and what it says then is that none came."""
    app = runner(dsn)

    @app.job("hurry", max_duration="2s")
    async def hurry(payload: dict[str, int], job: Job) -> Any:
        return [await job.signal("k"), job.timed_out]

    async with working(app):
        handle = await app.enqueue(hurry, {})
        assert await handle.wait(timeout=120) == [None, True]


async def test_a_cancelled_job_does_not_wait_any_more(dsn: str, database: Connection) -> None:
    """B6"""
    app = runner(dsn)
    given = waits(app)
    async with working(app):
        handle = await app.enqueue("wait", {"key": "a"})
        await waiting(database)
        assert await handle.cancel() == "cancelled"
        await app.signal("a", 1)
        with pytest.raises(JobCancelled):
            await handle.wait(timeout=120)
    assert given.empty()


async def test_a_payload_that_does_not_fit_is_one_clear_error_and_the_next_can_be_waited_for(
    dsn: str, database: Connection
) -> None:
    """B16: the same on every attempt."""
    app = runner(dsn)

    @app.job("ship", max_attempts=1)
    async def ship(payload: dict[str, int], job: Job) -> Any:
        try:
            packed = await job.signal("k", type=Packed)
        except SignalRefused as error:
            if payload.get("strict"):
                raise
            packed = await job.signal("k", type=Packed)
            assert packed is not None
            return [packed.boxes, str(error)]
        return packed

    async with working(app):
        patient = await app.enqueue(ship, {})
        strict = await app.enqueue(ship, {"strict": 1})
        await waiting(database, 2)
        await app.signal("k", {"boxes": "many"})
        with pytest.raises(
            JobFailed, match="payload of signal k does not fit: boxes: Input should"
        ):
            await strict.wait(timeout=120)
        await app.signal("k", {"boxes": 2})
        boxes, error = await patient.wait(timeout=120)
        assert boxes == 2
        assert error.startswith("the payload of signal k does not fit: boxes: ")


@pytest.mark.parametrize("way", ["bare", "group", "returned"])
async def test_a_handler_that_catches_everything_waits_all_the_same(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    app = runner(dsn)

    @app.job("rude")
    async def rude(payload: dict[str, int], job: Job) -> Any:
        if way == "group":
            async with asyncio.TaskGroup() as group:
                first = group.create_task(_awaited(job.signal("a")))
                second = group.create_task(_awaited(job.signal("b")))
            return [first.result(), second.result()]
        try:
            return [await job.signal("a"), await job.signal("b")]
        except BaseException:
            if way == "bare":
                raise ValueError("cleaned up") from None
            return "cleaned up"

    async with working(app):
        handle = await app.enqueue(rude, {})
        await waiting(database)
        await app.signal("b", 2)
        await app.signal("a", 1)
        assert await handle.wait(timeout=120) == [1, 2]
    warned = [one for one in caplog.records if "went on after job.signal()" in one.message]
    assert bool(warned) == (way != "group")


async def _awaited(signal: Awaitable[Any]) -> Any:
    return await signal


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_a_sync_handler_is_told_what_to_use_and_can_use_it(
    dsn: str, database: Connection, executor: str
) -> None:
    app = runner(dsn, registry=signal_handlers.app.registry)
    async with working(app):
        handle = await app.enqueue(f"sync-{executor}", {})
        await waiting(database)
        await app.signal("k", {"a": 1})
        said, in_own_loop, signalled, timed_out = await handle.wait(timeout=120)
        assert said.startswith("job.signal() needs an async handler: return Snooze(")
        assert in_own_loop == said
        assert (signalled, timed_out) == ({"a": 1}, False)


async def test_a_payload_that_is_no_json_or_too_large_is_refused_in_one_line(dsn: str) -> None:
    app = runner(dsn)
    with pytest.raises(ConfigurationError, match="has 70,002 bytes of JSON, the most is 65,536: "):
        await app.signal("k", "x" * 70_000)
    with pytest.raises(ConfigurationError, match="the most is 65,536: "):
        await app.signal("k", "x" * 2_000_000)
    with pytest.raises(ConfigurationError, match="the payload of a signal"):
        await app.signal("k", float("nan"))


@pytest.mark.parametrize("wanted", [3, {"boxes": int}, []])
async def test_a_type_that_nothing_can_be_read_into_is_refused_in_one_line(
    dsn: str, wanted: Any
) -> None:
    app = runner(dsn)

    @app.job("ship", max_attempts=1)
    async def ship(_: Any, job: Job) -> Any:
        return await job.signal("k", type=wanted)

    async with working(app):
        handle = await app.enqueue(ship, {})
        with pytest.raises(JobFailed) as failed:
            await handle.wait(timeout=120)
    assert f"takes a type that JSON can be read into, such as a pydantic model, not {wanted!r}" in (
        str(failed.value)
    )


@pytest.mark.parametrize("key", ["", "k" * 513, "a\0b", "\ud800", 7])
async def test_a_key_that_cannot_be_one_is_refused_by_every_call(dsn: str, key: Any) -> None:
    app = runner(dsn)
    said = "the key of a signal must be a text of 1 to 512 bytes"
    with pytest.raises(ConfigurationError, match=said):
        await app.signal(key)
    with pytest.raises(ConfigurationError, match=said):
        Snooze("1h", wake_on=key)
    with pytest.raises(ConfigurationError, match=said):
        Job.signal(None, key)  # type: ignore[call-overload]  # refused before anything else
