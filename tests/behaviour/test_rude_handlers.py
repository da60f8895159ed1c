"""Handlers that raise SystemExit in tasks, or cancel every task there is, in a worker's own
process: it goes on, and so do the others' jobs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.behaviour.test_lost_workers import is_alive
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.waiting import equals, until

APP = "tests.behaviour.rude_app:app"
INSERT = "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ($1, $2) RETURNING id"
ENDED = """
SELECT kind, state::text, attempt, errors -> 0 ->> 'type', result #>> '{}'
FROM hybrid_runner.archive ORDER BY kind
"""


WITHOUT_UVLOOP = 'raise ImportError("not in this test")'


@pytest.fixture(params=["asyncio", "uvloop"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the worker finds its modules: with a loop of Python's, or uvloop's."""
    if request.param == "asyncio":
        (tmp_path / "uvloop.py").write_text(WITHOUT_UVLOOP)
    return f"{tmp_path}:{ROOT}"


@asynccontextmanager
async def a_worker(dsn: str, path: str, *options: str) -> AsyncIterator[WorkerProcess]:
    settings = {
        "HYBRID_RUNNER_DSN": dsn,
        "HYBRID_RUNNER_LOG_LEVEL": "info",
        "PYTHONPATH": path,
    }
    async with worker(APP, *options, cwd=ROOT, **settings) as process:
        await process.says("listening on")
        yield process


async def ended(database: Connection, count: int) -> Sequence[tuple[object, ...]]:
    await until(
        lambda: database.fetchval("SELECT count(*) FROM hybrid_runner.archive"), equals(count)
    )
    return [tuple(row) for row in await database.fetch(ENDED)]


async def insert(database: Connection, kind: str, payload: object = None) -> int:
    job_id: int = await database.fetchval(INSERT, kind, orjson.dumps(payload).decode())
    return job_id


@pytest.mark.parametrize(
    ("kind", "error", "is_charged"),
    [
        ("exit_in_group", "SystemExit", True),
        ("exit_in_group", "KeyboardInterrupt", True),
        ("exit_in_gather", "SystemExit", True),
        ("exit_in_wait_for", "SystemExit", True),
        ("exit_in_thread_of_loop", "SystemExit", True),
        ("exit_unawaited", "SystemExit", False),
        ("exit_in_callback", "KeyboardInterrupt", False),
        ("stop_the_loop", "", False),
    ],
)
async def test_an_exit_in_a_task_ends_neither_the_worker_nor_the_jobs_of_others(
    dsn: str, path: str, database: Connection, kind: str, error: str, *, is_charged: bool
) -> None:
    """Charged is the job whose handler awaits that task, and no other."""
    async with a_worker(dsn, path) as process:
        innocent = await insert(database, "innocent")
        await until(
            lambda: database.fetchval(
                "SELECT progress FROM hybrid_runner.jobs WHERE id = $1", innocent
            )
        )
        await insert(database, kind, error)
        [rude] = await ended(database, 1)
        charged = (kind, "failed", 1, error, None)
        assert rude == (charged if is_charged else (kind, "completed", 1, None, "went on"))
        await insert(database, "let_go")
        others = [row for row in await ended(database, 3) if row[0] != kind]
        assert others == [
            ("innocent", "completed", 1, None, "ok"),
            ("let_go", "completed", 1, None, None),
        ]
        assert await process.ends() == 0
    if kind != "exit_in_thread_of_loop":
        assert [
            line["level"] for line in process.lines if line.get("event") == "worker.exit_ignored"
        ]


async def test_a_second_signal_still_ends_at_once(
    dsn: str, path: str, database: Connection
) -> None:
    async with a_worker(dsn, path) as process:
        await insert(database, "exit_unawaited", "SystemExit")
        await insert(database, "innocent")
        await until(lambda: database.fetchval("SELECT max(progress::text) FROM hybrid_runner.jobs"))
        process.process.terminate()
        await process.says("1 jobs are running")
        assert await process.ends() == 143


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["alone", "of two"])
async def test_a_handler_that_cancels_all_tasks_does_not_end_its_worker(
    dsn: str, path: str, database: Connection, options: Sequence[str]
) -> None:
    async with a_worker(dsn, path, *options) as process:
        for round_ in range(1, 4):
            await insert(database, "cancel_all")
            await insert(database, "quick")
            rows = await ended(database, 2 * round_)
            assert {row[1] for row in rows} == {"completed"}
        assert await process.ends() == 0
    assert not [line for line in process.lines if "Traceback" in line.get("exception", "")]


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["alone", "of two"])
async def test_a_signal_for_a_fork_of_a_handler_is_none_for_its_worker(
    dsn: str, path: str, database: Connection, options: Sequence[str]
) -> None:
    """Asyncio's pipe, by which the loop learns of signals, is the fork's as well."""
    async with a_worker(dsn, path, *options) as process:
        for number in range(1, 4):
            await insert(database, "fork_from_a_thread")
            rows = await ended(database, number)
            assert {row[1:] for row in rows} == {("completed", 1, None, "went on")}
        assert await process.ends() == 0
    assert [line["event"] for line in process.lines if "stopp" in line["message"]]
    assert not [line for line in process.lines if "second SIGTERM" in line["message"]]


async def test_a_fork_that_goes_on_in_the_workers_loop_ends(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """It has the worker's connections, too."""
    (tmp_path / "uvloop.py").write_text(WITHOUT_UVLOOP)
    async with a_worker(dsn, f"{tmp_path}:{ROOT}"):
        await insert(database, "fork_and_return")
        [(_, state, _, _, fork)] = await ended(database, 1)
        assert state == "completed"
        await until(lambda: is_alive(int(str(fork))), equals(False))
