"""hybrid-runner worker, from INSERT to archive."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.interpreter import YOUNG
from tests.cli.running import NOBODY, worker

TASKS = """
import time
from hybrid_runner import Job, Runner

app = Runner("postgresql://nobody@127.0.0.1:1/the-command-line-wins")

@app.job("double", queue="numbers")
async def double(payload: dict, job: Job) -> int:
    await job.progress(0.5, "half of it")
    return payload["n"] * 2

@app.job("hang")
def hang(payload: dict) -> None:
    time.sleep(300)
"""
INSERT = (
    "INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ($1, $2, $3::jsonb) RETURNING id"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_inserted_job_is_archived_and_a_signal_ends_in_order(
    number: signal.Signals, dsn: str, database: Connection, folder: Path
) -> None:
    async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder) as process:
        await process.says("listening on default, numbers")
        job = await database.fetchval(INSERT, "numbers", "double", '{"n": 21}')
        await process.says("completed, attempt", job)
        view = await client_calls.get_job(database, job)
        assert view is not None
        assert (view.state, view.result) == ("completed", 42)
        assert await process.ends(number) == 0
    assert "has stopped" in process.lines[-1]["message"]
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0


async def test_one_jobs_log_lines_tell_its_story_in_order(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder) as process:
        await process.says("listening")
        job = await database.fetchval(INSERT, "numbers", "double", '{"n": 21}')
        await process.says("completed, attempt", job)
        assert await process.ends() == 0
    story = [line["message"] for line in process.lines if line.get("job") == job]
    assert len(story) == 4
    claimed, started, progress, completed = story
    assert "claimed by" in claimed
    assert "attempt 1 of 5" in claimed
    assert started == "double starts"
    assert "half of it" in progress
    assert completed.endswith("completed, attempt 1 of 5")


@pytest.mark.parametrize(
    ("sets", "has"), [("", YOUNG), ("import gc; gc.set_threshold(5_000)", 5_000)]
)
async def test_garbage_is_looked_for_less_often_unless_the_application_says_how_often(
    sets: str, has: int, dsn: str, database: Connection, folder: Path
) -> None:
    asks = (
        'import gc\n\n@app.job("often")\nasync def often(payload: dict) -> int:\n    return'
        " gc.get_threshold()[0]\n"
    )
    (folder / "tasks.py").write_text(f"{TASKS}\n{sets}\n{asks}")
    async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder) as process:
        await process.says("listening")
        job = await database.fetchval(INSERT, "default", "often", "{}")
        await process.says("completed, attempt", job)
        view = await client_calls.get_job(database, job)
        assert view is not None
        assert view.result == has
        assert await process.ends() == 0


async def test_only_the_queues_that_were_named_are_worked_on(dsn: str, folder: Path) -> None:
    async with worker(
        "tasks:app",
        "--queue",
        "numbers=3",
        "--queue",
        "letters",
        "--dsn",
        dsn,
        cwd=folder,
        HYBRID_RUNNER_SLOTS="7",
    ) as process:
        assert "queues numbers (3 slots), letters (100 slots); kinds" in (
            await process.says("slots")
        )["message"].replace("(7 ", "(100 ")
        assert await process.ends() == 0


async def test_a_queue_that_no_handler_names_is_warned_of(dsn: str, folder: Path) -> None:
    arguments = (
        "tasks:app",
        "--queue",
        "nonsense",
        "--queue",
        "numbers",
        "--queue",
        "default",
        "--dsn",
        dsn,
    )
    async with worker(*arguments, cwd=folder) as process:
        await process.says("listening")
        assert await process.ends() == 0
    [warning] = [line["message"] for line in process.lines if line["level"] == "warning"]
    assert (
        warning == "no handler names the queue 'nonsense' (they name: default, numbers); "
        "jobs inserted into it still run if their kind is known"
    )


async def test_thread_that_never_ends_does_not_keep_the_process(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with worker(
        "tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, HYBRID_RUNNER_GRACE="0.2"
    ) as process:
        await process.says("listening")
        job = await database.fetchval(INSERT, "default", "hang", "{}")
        await process.says("hang starts", job)
        assert await process.ends() == 0
    view = await client_calls.get_job(database, job)
    assert view is not None
    assert (view.state, view.attempt) == ("queued", 0)


async def test_second_signal_ends_at_once(dsn: str, database: Connection, folder: Path) -> None:
    async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder) as process:
        await process.says("listening")
        job = await database.fetchval(INSERT, "default", "hang", "{}")
        await process.says("hang starts", job)
        process.process.send_signal(signal.SIGTERM)
        await process.says("1 jobs are running")
        assert await process.ends() == 128 + signal.SIGTERM


async def test_signal_while_waiting_for_the_server_ends_in_order(folder: Path) -> None:
    async with worker("tasks:app", "--dsn", NOBODY, cwd=folder) as process:
        await process.says("trying again")
        assert await process.ends() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_a_variable_that_is_no_setting_is_warned_of_once(
    processes: str, dsn: str, database: Connection, folder: Path
) -> None:
    arguments = ("tasks:app", "--dsn", dsn, "--processes", processes)
    async with worker(*arguments, cwd=folder, HYBRID_RUNNER_AWAKE_FROM="150") as process:
        await process.says("has started" if processes == "1" else "worker processes work")
        assert await process.ends() == 0
    said = [line for line in process.lines if line.get("event") == "settings.unknown"]
    assert [(line["level"], line["message"]) for line in said] == [
        (
            "warning",
            "the environment variable HYBRID_RUNNER_AWAKE_FROM is no setting: it is ignored",
        )
    ]
