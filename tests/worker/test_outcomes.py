import asyncio
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import (
    Cancel,
    Fail,
    Job,
    Retry,
    RetryPolicy,
    Snooze,
    StaleClaim,
    State,
    WaitTimeout,
)
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.working import outcome, runner, working
from tests.worker import handlers

AT_ONCE = RetryPolicy(base=timedelta(0), cap=timedelta(milliseconds=20))


async def test_all_three_executors_run_and_return_results(dsn: str) -> None:
    """D7"""
    app = runner(dsn, handlers.app.registry)
    async with working(app):
        assert (
            await (await app.enqueue(handlers.add, handlers.Pair(left=1, right=2))).wait(120) == 3
        )
        in_thread = await (
            await app.enqueue(handlers.add_in_thread, handlers.Triple(1, 2, 3))
        ).wait(120)
        assert in_thread == {"sum": 6, "main": False}
        in_process = await (
            await app.enqueue(handlers.add_in_process, {"left": 1, "right": 2})
        ).wait(120)
        assert in_process["sum"] == 3
        assert in_process["pid"] != os.getpid()


@pytest.mark.parametrize("kind", ["add_in_thread", "add_in_process"])
async def test_progress_said_outside_the_loop_is_stored(dsn: str, kind: str) -> None:
    app = runner(dsn, handlers.app.registry)
    async with working(app):
        job = await outcome(app, kind, {"left": 1, "middle": 1, "right": 1})
    assert job.state is State.COMPLETED
    # the last word may come after the end: then the job is gone, which is no error
    assert job.progress in (None, {"fraction": 0.5, "message": "half"})


async def test_a_process_that_dies_fails_its_attempt_alone(dsn: str) -> None:
    app = runner(dsn, handlers.app.registry)
    async with working(app):
        died = await outcome(app, "die_in_process", {"code": 7})
        assert died.errors[0]["type"] == "ProcessDied"
        assert "exit code 7" in died.errors[0]["message"]
        raised = await outcome(app, "raise_in_process", {"what": "luck"})
        assert (raised.errors[0]["type"], raised.errors[0]["message"]) == ("SystemExit", "no luck")
        assert (await outcome(app, "add_in_process", {"left": 2, "right": 2})).result["sum"] == 4


async def test_a_process_that_died_while_it_had_nothing_to_do_costs_no_attempt(dsn: str) -> None:
    """The kernel does that when it is short of memory."""
    app = runner(dsn, handlers.app.registry)
    async with working(app) as worker:
        await outcome(app, "add_in_process", {"left": 1, "right": 1})
        inside.kill_idle_process(worker)
        again = await outcome(app, "add_in_process", {"left": 2, "right": 2})
    assert (again.result["sum"], again.attempt) == (4, 1)


async def test_a_process_past_its_time_out_is_killed(dsn: str, tmp_path: Path) -> None:
    app = runner(dsn, handlers.app.registry)
    pid_file = tmp_path / "pid"
    async with working(app):
        # Its process is there then: on a busy machine one takes longer to start than this time-out.
        await outcome(app, "add_in_process", {"left": 1, "right": 1})
        job = await outcome(app, "hang_in_process", {"pid_file": str(pid_file)}, timeout=6)
    assert job.errors[0]["type"] == "TimeoutError"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


async def test_outcomes_are_values(dsn: str) -> None:
    app = runner(dsn)

    @app.job("say")
    async def say(payload: dict[str, str], job: Job) -> Any:
        return {"fail": Fail("no"), "cancel": Cancel("stop"), "none": None}[payload["what"]]

    async with working(app):
        failed = await outcome(app, "say", {"what": "fail"})
        assert (failed.state, failed.attempt, failed.errors[0]["message"]) == (
            State.FAILED,
            1,
            "no",
        )
        assert (await outcome(app, "say", {"what": "cancel"})).state is State.CANCELLED
        assert (await outcome(app, "say", {"what": "none"})).state is State.COMPLETED


async def test_a_snoozed_job_keeps_its_identity_and_its_memory_and_is_not_charged(dsn: str) -> None:
    app = runner(dsn)

    @app.job("count", max_attempts=1)
    async def count(payload: dict[str, int], job: Job) -> Any:
        seen = (job.data or {"seen": 0})["seen"] + 1
        return (
            Snooze(0.01, data={"seen": seen})
            if seen < 4
            else {"seen": seen, "attempt": job.attempt, "id": job.id}
        )

    async with working(app):
        job = await outcome(app, "count")
    assert job.result == {"seen": 4, "attempt": 1, "id": job.id}


async def test_an_exception_is_retried_by_policy_and_every_error_is_kept(dsn: str) -> None:
    app = runner(dsn)

    @app.job("flaky", max_attempts=3, retry=AT_ONCE)
    async def flaky(payload: dict[str, int], job: Job) -> None:
        raise RuntimeError(f"attempt {job.attempt}")

    async with working(app):
        job = await outcome(app, "flaky")
    assert (job.state, job.attempt) == (State.FAILED, 3)
    assert [e["message"] for e in job.errors] == ["attempt 1", "attempt 2", "attempt 3"]
    assert "RuntimeError" in job.errors[0]["traceback"]


async def test_retry_after_is_charged_and_comes_back(dsn: str) -> None:
    app = runner(dsn)

    @app.job("again")
    async def again(payload: dict[str, int], job: Job) -> Any:
        return Retry(after=0.01) if job.attempt == 1 else job.attempt

    async with working(app):
        assert (await outcome(app, "again")).result == 2


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError("own"),
        BaseException("odd"),
        MemoryError(),
    ],
)
async def test_whatever_a_handler_raises_ends_its_attempt_and_not_the_worker(
    dsn: str, error: BaseException
) -> None:
    app = runner(dsn)

    @app.job("raise", max_attempts=1)
    async def raise_it(payload: dict[str, int]) -> None:
        raise error

    @app.job("raise_in_thread", max_attempts=1)
    def raise_in_thread(payload: dict[str, int]) -> None:
        raise error

    async with working(app):
        for kind in ("raise", "raise_in_thread"):
            job = await outcome(app, kind)
            assert (job.state, job.errors[0]["type"]) == (State.FAILED, type(error).__name__)


async def test_an_error_with_a_nul_in_it_is_kept(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(
        logging.CRITICAL, "hybrid_runner.worker"
    )  # pytest-xdist cannot send half a character
    app = runner(dsn)

    @app.job("nul", max_attempts=1)
    async def nul(payload: dict[str, int]) -> None:
        raise ValueError("a\x00b\ud800")

    async with working(app):
        assert (await outcome(app, "nul")).errors[0]["message"] == "a\ufffdb?"


@pytest.mark.parametrize(
    "result", [object(), {"a": {1: object()}}, "\x00", float, "x" * 2_000_000, float("nan")]
)
async def test_a_result_that_cannot_be_stored_fails_the_job_at_once(dsn: str, result: Any) -> None:
    app = runner(dsn)

    @app.job("odd")
    async def odd(payload: dict[str, int]) -> Any:
        return result

    async with working(app):
        job = await outcome(app, "odd")
    assert (job.state, job.attempt) == (State.FAILED, 1)
    assert "the result" in job.errors[0]["message"]
    assert job.errors[0]["type"] == "ResultRefused"


async def test_a_payload_that_does_not_fit_fails_the_job_at_once_with_the_reason(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, handlers.app.registry)
    async with working(app) as worker:
        job_id = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, payload)"
            """ VALUES ('add', '{"left": "one"}') RETURNING id"""
        )
        await worker.settled(1)
        job = await app.get(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (State.FAILED, 1)
    assert "left: " in job.errors[0]["message"]
    assert "right: Field required" in job.errors[0]["message"]
    assert job.errors[0]["type"] == "PayloadRefused"


async def test_an_attempt_past_its_time_out_is_an_error_like_any_other(dsn: str) -> None:
    app = runner(dsn)

    @app.job("slow", max_attempts=2, timeout=0.05, retry=AT_ONCE)
    async def slow(payload: dict[str, int]) -> None:
        await asyncio.Event().wait()

    async with working(app):
        job = await outcome(app, "slow")
    assert [e["type"] for e in job.errors] == ["TimeoutError", "TimeoutError"]
    assert "0.05 s" in job.errors[0]["message"]


async def test_a_time_out_of_the_handlers_own_is_told_apart(dsn: str) -> None:
    app = runner(dsn)

    @app.job("inner", max_attempts=1)
    async def inner(payload: dict[str, int]) -> None:
        raise TimeoutError("the other side was slow")

    async with working(app):
        assert (await outcome(app, "inner")).errors[0]["message"] == "the other side was slow"


async def test_a_job_past_its_finish_by_fails_without_running(dsn: str) -> None:
    app = runner(dsn)
    ran: list[int] = []

    @app.job("late")
    async def late(payload: dict[str, int], job: Job) -> None:
        ran.append(job.id)

    async with working(app):
        job = await outcome(app, "late", finish_by=datetime.now(UTC) - timedelta(seconds=1))
    assert (job.state, ran, job.errors[0]["type"]) == (State.FAILED, [], "FinishByPassed")
    assert "finish_by" in job.errors[0]["message"]


async def test_a_job_whose_finish_by_passes_while_it_runs_fails(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    stopped = asyncio.Event()

    @app.job("endless", timeout=None)
    async def endless(payload: dict[str, int]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with working(app):
        # Long enough that it has begun by then, on a busy machine too.
        job = await outcome(app, "endless", finish_by=datetime.now(UTC) + timedelta(seconds=5))
    assert (job.state, job.attempt, stopped.is_set()) == (State.FAILED, 1, True)
    assert "passed while it ran" in job.errors[-1]["message"]
    assert job.errors[-1]["type"] == "FinishByPassed"


async def test_a_late_outcome_changes_nothing_and_is_counted(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    started, release = asyncio.Event(), asyncio.Event()

    @app.job("slow")
    async def slow(payload: dict[str, int], job: Job) -> str:
        if job.attempt == 1:
            started.set()
            await release.wait()
            return "late"
        return "in time"

    async with working(app) as worker:
        handle = await app.enqueue(slow, {})
        await started.wait()
        # as a rescue would do it
        await database.execute(
            "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, run_at = now() WHERE id"
            " = $1",
            handle.id,
        )
        release.set()
        await worker.idle()
        assert worker.status().stale == 1
        await database.execute("SELECT pg_notify('hybrid_runner.default', '')")
        assert await handle.wait(120) == "in time"


async def test_a_handler_completes_its_job_in_its_own_transaction(dsn: str) -> None:
    app = runner(dsn)

    @app.job("own", retry=AT_ONCE)
    async def own(payload: dict[str, bool], job: Job) -> str:
        connection = await connect(dsn)
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("CREATE TABLE IF NOT EXISTS public.work_done (id bigint)")
        await connection.execute("INSERT INTO public.work_done VALUES ($1)", job.id)
        await job.complete("mine", connection=connection)
        if payload["commit"] or job.attempt > 1:
            await transaction.commit()
            await connection.close()
            return "ignored"
        await transaction.rollback()
        await connection.close()
        raise ValueError("rolled back")

    async with working(app) as worker:
        kept = await outcome(app, "own", {"commit": True})
        assert (kept.state, kept.result, kept.attempt) == (State.COMPLETED, "mine", 1)
        again = await outcome(app, "own", {"commit": False})
        assert (again.state, again.result, again.attempt) == (State.COMPLETED, "mine", 2)
        await worker.idle()
        assert worker.status().stale == 0


async def test_completing_a_job_that_was_taken_away_is_refused(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    refused = asyncio.Event()

    @app.job("own", max_attempts=1)
    async def own(payload: dict[str, int], job: Job) -> None:
        await database.execute(
            "UPDATE hybrid_runner.jobs SET claim = claim + 1 WHERE id = $1", job.id
        )
        try:
            await job.complete(connection=database)
        except StaleClaim:
            refused.set()

    async with working(app):
        await app.enqueue(own, {})
        await asyncio.wait_for(refused.wait(), 120)


async def test_waiting_ends_in_time_and_the_job_goes_on(dsn: str) -> None:
    app = runner(dsn)
    release = asyncio.Event()

    @app.job("hold")
    async def hold(payload: dict[str, int]) -> int:
        await release.wait()
        return 1

    async with working(app):
        handle = await app.enqueue(hold, {})
        with pytest.raises(WaitTimeout):
            await handle.wait("50ms")
        release.set()
        assert await handle.wait(120) == 1


async def test_results_come_back_as_the_handlers_return_type(dsn: str) -> None:
    class Size(BaseModel):
        width: int

    app = runner(dsn)

    @app.job("measure")
    async def measure(payload: dict[str, int]) -> Any:
        return Size(width=3)

    @app.job("typed")
    async def typed(payload: dict[str, int]) -> list[tuple[int, str]]:
        return [(1, "a")]

    async with working(app):
        assert await (await app.enqueue(measure, {})).wait(120) == {"width": 3}
        assert await (await app.enqueue(typed, {})).wait(120) == [(1, "a")]
