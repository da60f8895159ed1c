"""hybrid-runner enqueue, with and without waiting."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.cli.waiting import describe
from hybrid_runner.model.jobs import JobStatus, State
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import COMMAND, environment, fails, hybrid_runner, succeeds, worker
from tests.support.jobs import running

TASKS = """
import asyncio, pathlib
from hybrid_runner import Cancel, Job, Runner

app = Runner()

@app.job("double")
async def double(payload: dict) -> int:
    return payload["n"] * 2

@app.job("fail", max_attempts=1)
async def fail(payload: dict) -> None:
    raise ValueError("too bad")

@app.job("lookup", max_attempts=1)
async def lookup(payload: dict) -> None:
    payload["x"]

@app.job("cancel")
async def cancel(payload: dict) -> Cancel:
    return Cancel("not today")

@app.job("slow")
async def slow(payload: dict, job: Job) -> str:
    await job.progress(0.5, "half of it")
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.01)
    return "done"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


async def test_every_option_reaches_the_row(dsn: str, database: Connection) -> None:
    out = await asyncio.to_thread(
        succeeds,
        "enqueue",
        "double",
        '{"n": 1}',
        "--queue",
        "images",
        "--key",
        "k",
        "--priority",
        "3",
        "--run-at",
        "2050-01-01T00:00+00:00",
        "--max-attempts",
        "7",
        "--timeout",
        "1m",
        "--finish-by",
        "2051-01-01T00:00+00:00",
        "--start-by",
        "2050-06-01T00:00+00:00",
        "--data",
        '{"seen": 0}',
        "--dsn",
        dsn,
    )
    [listed] = await client_calls.list_jobs(database, None, None, None, 10)
    job = await client_calls.get_job(database, listed.id)
    assert job is not None
    assert out == f"job {job.id} inserted\n"
    assert (job.kind, job.payload, job.queue, job.key, job.priority, job.max_attempts) == (
        "double",
        {"n": 1},
        "images",
        "k",
        3,
        7,
    )
    assert job.run_at.isoformat() == "2050-01-01T00:00:00+00:00"
    assert job.finish_by is not None
    assert (job.finish_by.isoformat(), job.data) == ("2051-01-01T00:00:00+00:00", {"seen": 0})
    assert job.timeout is not None
    assert job.timeout.total_seconds() == 60
    assert job.start_by is not None
    assert job.start_by.isoformat() == "2050-06-01T00:00:00+00:00"


async def test_what_became_of_the_key_is_said(dsn: str, database: Connection) -> None:
    holder = (await running(database, "k")).id
    put_off = ("--delay", "1h", "--max-wait", "2h", "--key", "k", "--dsn", dsn)

    async def said(*arguments: str) -> str:
        return await asyncio.to_thread(succeeds, "enqueue", "work", *arguments, *put_off)

    job = holder + 1
    assert await said('{"n": 1}', "--on-conflict", "collect", "--max-items", "2") == (
        f"job {job} follows: it begins when the job that holds the key 'k' has ended\n"
    )
    assert await said('[{"n": 2}]', "--on-conflict", "collect", "--max-items", "2") == (
        f"job {job} collected: it waits, and has these items too\n"
    )
    view = await client_calls.get_job(database, job)
    assert view is not None
    assert view.payload == [{"n": 1}, {"n": 2}]
    assert await said("--on-conflict", "follow") == f"job {job} replaced\n"
    refused = fails("enqueue", "work", "--unique-for", "1h", "--dsn", dsn)
    assert "unique_for needs a key" in refused


def test_payload_comes_from_stdin_or_is_empty(dsn: str) -> None:
    first = json.loads(
        succeeds("enqueue", "double", "-", "--json", "--dsn", dsn, stdin='{"n": "é"}')
    )
    second = json.loads(succeeds("enqueue", "double", "--delay", "1h", "--json", "--dsn", dsn))
    shown = {
        number: json.loads(succeeds("jobs", "show", str(number), "--json", "--dsn", dsn))["payload"]
        for number in (first["id"], second["id"])
    }
    assert shown == {first["id"]: {"n": "é"}, second["id"]: {}}


def test_held_key_is_said(dsn: str) -> None:
    job = json.loads(succeeds("enqueue", "double", "--key", "k", "--json", "--dsn", dsn))["id"]
    assert (
        succeeds("enqueue", "double", "--key", "k", "--dsn", dsn)
        == f"job {job} exists: it holds the key 'k', nothing was stored\n"
    )
    replaced = succeeds(
        "enqueue", "double", "--key", "k", "--on-conflict", "replace", "--json", "--dsn", dsn
    )
    assert json.loads(replaced) == {"id": job, "enqueued": "replaced"}
    refused = fails("enqueue", "double", "--key", "k", "--on-conflict", "error", "--dsn", dsn)
    assert f"key 'k' is held by live job {job}: wait for it, or choose --on-conflict" in refused
    assert "on_conflict" not in refused


def test_what_postgres_cannot_store_is_one_line(dsn: str) -> None:
    assert "NUL character" in fails("enqueue", "double", '{"x": "\\u0000"}', "--dsn", dsn)
    assert "the most is 1,048,576" in fails(
        "enqueue", "double", "-", "--dsn", dsn, stdin=json.dumps("x" * 2_000_000)
    )
    assert "1 to 512 bytes" in fails("enqueue", "double", "--key", "", "--dsn", dsn)
    assert "cannot be written as JSON" in fails("enqueue", "double", r'"\ud800"', "--dsn", dsn)


async def test_waiting_prints_the_result_or_fails_with_the_reason(dsn: str, folder: Path) -> None:
    async with worker("tasks:app", "--dsn", dsn, cwd=folder) as process:
        await process.says("listening")
        out = await asyncio.to_thread(
            succeeds, "enqueue", "double", '{"n": 4}', "--wait", "--dsn", dsn
        )
        assert out.splitlines()[1].endswith("completed: 8")
        out = await asyncio.to_thread(
            succeeds, "enqueue", "double", '{"n": 4}', "--wait", "--json", "--dsn", dsn
        )
        document = json.loads(out)
        assert document == {
            "id": document["id"],
            "enqueued": "inserted",
            "state": "completed",
            "result": 8,
        }
        ended = await asyncio.to_thread(
            hybrid_runner, "enqueue", "fail", "--wait", "--json", "--dsn", dsn
        )
        assert ended.returncode == 1
        assert json.loads(ended.stdout)["state"] == "failed"
        assert ended.stderr.count("\n") == 1
        assert "failed: ValueError: too bad" in ended.stderr
        assert (
            await asyncio.to_thread(fails, "enqueue", "lookup", "--wait", "--dsn", dsn)
            == "job 4 (lookup) failed: KeyError: 'x'"
        )
        assert "was cancelled: not today" in await asyncio.to_thread(
            fails, "enqueue", "cancel", "--wait", "--dsn", dsn
        )


def test_waiting_ends_when_its_own_time_is_over(dsn: str) -> None:
    assert "has not ended after 0.2 s; it goes on" in fails(
        "enqueue", "double", "--wait-timeout", "0.2", "--dsn", dsn
    )


def test_the_id_is_told_also_when_waiting_ends_too_early(dsn: str) -> None:
    ended = hybrid_runner(
        "enqueue", "double", "--wait", "--wait-timeout", "1s", "--json", "--dsn", dsn
    )
    assert ended.returncode == 1
    assert json.loads(ended.stdout) == {
        "id": 1,
        "enqueued": "inserted",
        "state": "queued",
        "error": "job 1 has not ended after 1 s; it goes on",
    }
    assert ended.stderr == "hybrid-runner: job 1 has not ended after 1 s; it goes on\n"


async def test_a_terminal_shows_a_bar_while_waiting(dsn: str, folder: Path) -> None:
    terminal, stderr = os.openpty()
    async with worker("tasks:app", "--dsn", dsn, cwd=folder) as process:
        await process.says("listening")
        waiting = await asyncio.create_subprocess_exec(
            *COMMAND,
            "enqueue",
            "slow",
            "--wait",
            "--dsn",
            dsn,
            env=environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
        )
        os.close(stderr)
        seen = ""
        while "50% half of it" not in seen:
            seen += (await asyncio.to_thread(os.read, terminal, 4096)).decode(errors="replace")
        (folder / "go").touch()
        out, _ = await waiting.communicate()
    os.close(terminal)
    assert waiting.returncode == 0
    assert out.decode().splitlines()[-1].endswith('completed: "done"')


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (None, "job 7 is running"),
        ({"fraction": None, "message": "starting"}, "job 7 is running starting"),
        (
            {"fraction": 0.5, "message": "half\x1b[2J\nof it"},
            f"job 7 {'█' * 12}{'░' * 12}  50% half\ufffd[2J of it",
        ),
        ({"fraction": 1, "message": None}, f"job 7 {'█' * 24} 100%"),
        ({"fraction": "odd", "message": 3}, "job 7 is running 3"),
        ("odd", "job 7 is running"),
    ],
)
def test_the_bar_says_what_the_handler_said(progress: object, expected: str) -> None:
    assert describe(JobStatus(7, "slow", State.RUNNING, progress, None, None)) == expected


async def test_enqueuing_is_the_first_line_of_a_jobs_story(dsn: str) -> None:
    ended = await asyncio.to_thread(
        hybrid_runner,
        "enqueue",
        "double",
        "--log-level",
        "debug",
        "--log-format",
        "json",
        "--json",
        "--dsn",
        dsn,
    )
    job = json.loads(ended.stdout)["id"]
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["message"] for line in lines if line.get("job") == job] == [
        "enqueued double: inserted"
    ]


async def test_ctrl_c_while_waiting_says_that_the_job_goes_on(dsn: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "enqueue",
        "double",
        "--wait",
        "--dsn",
        dsn,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    first = (await process.stdout.readline()).decode().split()
    assert first[2:] == ["inserted"]
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert err.decode().splitlines() == [f"hybrid-runner: job {first[1]} goes on"]
