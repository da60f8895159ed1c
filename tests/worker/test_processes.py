"""Handlers in processes: what they start, how they die, and what they may do to their worker."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import Runner, State, Worker
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import ROOT
from tests.cli.running import worker as worker_process
from tests.support.bells import seen
from tests.support.waiting import until
from tests.support.working import outcome, runner, working
from tests.worker import process_handlers


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[tuple[Runner, Worker]]:
    app = runner(dsn, process_handlers.app.registry, process_slots=2)
    async with working(app) as worker:
        yield app, worker


def is_alive(pid: int) -> bool:
    """Whether that process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def read(file: Path) -> list[int]:
    """The numbers of the handler's process, and of those that it has started."""
    look = lambda: file.read_text() if file.exists() else ""  # noqa: E731
    return [int(word) for word in (await until(look)).split()]


async def until_gone(pids: list[int]) -> None:
    await until(lambda: [pid for pid in pids if is_alive(pid)], lambda left: not left)


async def test_what_a_handler_starts_ends_by_sigterm(dsn: str) -> None:
    async with a_worker(dsn) as (app, _):
        assert (await outcome(app, "terminate")).result == -signal.SIGTERM


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver", "futures"])
async def test_multiprocessing_works_inside(dsn: str, method: str) -> None:
    async with a_worker(dsn) as (app, _):
        assert (await outcome(app, "multiply", method)).result == [2, 4]


@pytest.mark.parametrize("how", ["time-out", "cancel"])
async def test_what_a_handler_has_started_ends_when_its_attempt_is_stopped(
    dsn: str, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "pids"
    async with a_worker(dsn) as (app, worker):
        assert (await outcome(app, "add", [1, 2])).result == 3  # its process is there then
        timeout = 8.0 if how == "time-out" else None  # enough to start them
        handle = await app.enqueue("start_and_wait", {"file": str(file)}, timeout=timeout)
        pids = await read(file)
        if how == "cancel":
            await handle.cancel()
        await until(lambda: seen(worker).running == 0)
        await until_gone(pids)


@pytest.mark.parametrize("session", [False, True], ids=["its group", "sessions of their own"])
async def test_a_death_is_noticed_while_what_it_has_started_holds_its_connection(
    dsn: str, tmp_path: Path, *, session: bool
) -> None:
    """The time-out is an hour."""
    file = tmp_path / "pids"
    async with a_worker(dsn) as (app, _):
        payload = {"file": str(file), "then": "die", "session": session}
        job = await outcome(app, "start_and_wait", payload)
        _, *started = await read(file)
        assert (job.state, job.errors[0]["type"]) == (State.FAILED, "ProcessDied")
        assert f"exit code {-signal.SIGKILL}" in job.errors[0]["message"]
        if session:  # what leaves on purpose is not held
            assert [pid for pid in started if is_alive(pid)] == started
            for pid in started:
                os.kill(pid, signal.SIGKILL)
        await until_gone(started)


async def test_a_death_is_noticed_where_the_kernel_does_not_tell_of_it(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")  # as in older kernels, and elsewhere
    file = tmp_path / "pids"
    async with a_worker(dsn) as (app, _):
        job = await outcome(app, "start_and_wait", {"file": str(file), "then": "die"})
        assert f"exit code {-signal.SIGKILL}" in job.errors[0]["message"]
        await until_gone(await read(file))


async def test_what_holds_the_interpreter_ends_with_a_killed_worker(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """And with it what the handler has started."""
    file, settings = tmp_path / "pids", {"HYBRID_RUNNER_DSN": dsn}
    app = "tests.worker.process_handlers:app"
    async with worker_process(app, cwd=ROOT, **settings) as doomed:
        await doomed.says("listening on")
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('start_and_wait',"
            " jsonb_build_object('file', $1::text, 'then', 'hold the interpreter'))",
            str(file),
        )
        pids = await read(file)
        doomed.process.kill()
        await until_gone(pids)


async def test_threads_of_others_keep_no_process_from_its_job(dsn: str) -> None:
    """All threads of the loop's own pool are taken, as by calls that block."""
    held = threading.Event()
    async with a_worker(dsn) as (app, _):
        taken = [asyncio.create_task(asyncio.to_thread(held.wait)) for _ in range(40)]
        try:
            job = await outcome(app, "add", list(range(1, 50_000)), timeout=100)
        finally:
            held.set()
            await asyncio.gather(*taken)
        assert (job.state, job.attempt) == (State.COMPLETED, 1)


@pytest.mark.parametrize("what", ["rubbish", "a length beyond all bounds", "nothing more"])
async def test_a_process_that_sends_what_is_no_message_is_killed_at_once(
    dsn: str, what: str
) -> None:
    """The time-out is an hour."""
    async with a_worker(dsn) as (app, worker):
        job = await outcome(app, "say", {"what": what})
        assert (job.state, job.errors[0]["type"]) == (State.FAILED, "ProcessDied")
        assert (await outcome(app, "add", [1, 2])).result == 3
        await worker.idle()
        assert seen(worker).running == 0


async def test_reports_without_end_hold_up_nobody(dsn: str, tmp_path: Path) -> None:
    async with a_worker(dsn) as (app, _):
        flooding = await app.enqueue("flood", {"file": str(tmp_path / "enough")})
        await until(flooding.get, lambda job: job.progress is not None)
        for _ in range(5):
            assert (await outcome(app, "quick")).result == "ok"
        (tmp_path / "enough").touch()
        assert await flooding.wait(120) == "flooded"


async def test_a_fork_that_comes_back_from_the_handler_says_nothing(dsn: str) -> None:
    async with a_worker(dsn) as (app, _):
        for _ in range(3):
            assert (await outcome(app, "fork_and_return")).result == "parent"
            assert (await outcome(app, "add", [1, 2])).result == 3


async def test_what_a_thread_says_of_a_job_that_has_ended_is_not_taken_for_the_next_one(
    dsn: str,
) -> None:
    async with a_worker(dsn) as (app, _):
        before: Any = (await outcome(app, "report_later")).result
        job = await outcome(app, "wait_a_little")
    assert job.result == before  # the same process
    assert job.progress in (None, {"fraction": 0.1, "message": "of this job"})
