"""hybrid-runner worker --processes: real processes, a real Postgres, and real deaths."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.fleets import (
    ARCHIVED,
    INSERT,
    LATE,
    ONCE,
    RESULTS,
    TASKS,
    close_gate,
    fleet,
    open_gate,
    pids,
)
from tests.cli.running import NOBODY, fails
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.server import Server
from tests.support.waiting import until, until_fetched


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


# --- work


async def test_two_processes_share_the_jobs_and_show_themselves_on_one_port(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    arguments = ("--dsn", dsn, "--queue", "default=2")
    async with (
        fleet(*arguments, cwd=folder, HYBRID_RUNNER_HTTP_PORT=port) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        assert await client.get("/ready") == (
            200,
            {"ready": True, "phase": "running", "running": 2, "processes": 2},
        )
        await database.execute(INSERT, "pid", 200)
        await database.execute(INSERT, "core", 4)
        await until_fetched(database, ARCHIVED, 204)

        async def both_have_run_some() -> bool:
            """One of them may be slower than all that came before."""
            if done := len(await database.fetch(RESULTS, "pid")) == 2:
                return done
            await database.execute(INSERT, "pid", 1)
            return False

        await until(both_have_run_some)
        status, health = await client.get("/health")
        assert (status, health["healthy"], health["phase"], health["checks"][0]["ok"]) == (
            200,
            True,
            "running",
            True,
        )
        children = health["processes"]
        assert [
            (child["process"], child["restarts"], child["phase"], child["healthy"])
            for child in children
        ] == [
            (1, 0, "running", True),
            (2, 0, "running", True),
        ]
        assert all(
            [check["name"] for check in child["checks"]][:3] == ["process", "claiming", "loops"]
            for child in children
        )
        assert len({child["worker"]["id"] for child in children}) == 2
        assert all(child["worker"]["slots"] == 2 for child in children)
        known = {child["pid"] for child in children}
        by = {
            kind: {row[0] for row in await database.fetch(RESULTS, kind)}
            for kind in ("pid", "core")
        }
        assert by["pid"] == known
        assert by["core"] <= known
        assert await process.ends() == 0
    assert process.said("has stopped") == 2


async def test_a_killed_process_is_started_again_under_its_name_and_jobs_go_on(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    async with (
        fleet("--dsn", dsn, cwd=folder, WORKER_ID="w", HYBRID_RUNNER_HTTP_PORT=port) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        before = await pids(client)
        close_gate(folder)
        os.kill(before[1], signal.SIGKILL)
        warning = await process.says("was ended by SIGKILL")
        assert warning["level"] == "warning"
        assert (
            warning["message"]
            == f"worker process 2 (pid {before[1]}) was ended by SIGKILL; starting it again in 1 s"
        )
        ill = (await client.until("/health", 503)).body["processes"]
        assert [child["healthy"] for child in ill] == [True, False]
        assert (await client.get("/ready")).status == 503
        await database.execute(INSERT, "pid", 10)
        await until_fetched(database, ARCHIVED, 10)
        open_gate(folder)
        await client.until("/ready", 200)
        well = (await client.get("/health")).body["processes"]
        assert [child["restarts"] for child in well] == [0, 1]
        assert well[0]["pid"] == before[0]
        assert [child["worker"]["id"] for child in well] == ["w-1", "w-2"]
        assert await process.ends() == 0


async def test_a_process_that_cannot_be_started_again_is_tried_again_while_the_others_go_on(
    dsn: str, database: Connection, folder: Path
) -> None:
    """A release replaced the working folder; forks and memory run out the same way, as an
    OSError.
    """
    port = str(free_port())
    release = folder / "release"
    release.mkdir()
    (release / "tasks.py").write_text(TASKS)
    async with (
        fleet("--dsn", dsn, cwd=release, HYBRID_RUNNER_HTTP_PORT=port) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        before = await pids(client)
        release.rename(folder / "before")
        os.kill(before[0], signal.SIGKILL)
        for pause in (2, 4):  # the pace goes on from the death
            trouble = (await process.says("cannot be started"))["message"]
            why = f"cannot be started: No such file or directory: {release}"
            assert trouble == f"worker process 1 {why}; starting it again in {pause} s"
        ill = (await client.get("/health")).body["processes"]
        assert [child["healthy"] for child in ill] == [False, True]
        assert ill[0]["checks"][0]["reason"] == why
        await database.execute(INSERT, "pid", 10)
        await until_fetched(database, ARCHIVED, 10)
        assert {row[0] for row in await database.fetch(RESULTS, "pid")} == {before[1]}
        (folder / "before").rename(release)
        await client.until("/ready", 200)
        well = (await client.get("/health")).body["processes"]
        assert [child["restarts"] for child in well] == [1, 0]
        assert well[1]["pid"] == before[1]
        assert await process.ends() == 0


# --- starts that fail


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("taks:app", "there is no module 'taks'"),
        ("tasks:ap", "has no 'ap'"),
        ("empty:app", "this app has no handlers"),
    ],
)
def test_an_app_that_cannot_be_used_is_one_line(
    target: str, expected: str, dsn: str, folder: Path
) -> None:
    (folder / "empty.py").write_text("from hybrid_runner import Runner\napp = Runner()\n")
    assert expected in fails("worker", target, "--processes", "3", "--dsn", dsn, cwd=folder)


def test_a_server_that_cannot_be_used_is_one_line(
    server: Server, empty_dsn: str, folder: Path
) -> None:
    for dsn, expected in (
        ("nonsense", "the DSN cannot be used"),
        (server.dsn_of("hybrid_runner_is_not_there"), "does not exist"),
        (empty_dsn, "run `hybrid-runner migrate`"),
    ):
        assert expected in fails(
            "worker", "tasks:app", "--processes", "3", "--dsn", dsn, cwd=folder
        )


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (
            "if not first: raise ValueError('not again')",
            "importing 'tasks' raised ValueError: not again",
        ),
        ("if not first: os._exit(2)", "ended with exit code 2 before it worked"),
        (
            f"if not first:\n    {LATE.format(number='SIGTERM')}\n    raise ValueError('and late')",
            "raised ValueError: and late",
        ),
    ],
)
def test_a_child_that_cannot_start_ends_the_first_start_of_all_in_one_line(
    then: str, expected: str, dsn: str, folder: Path
) -> None:
    (folder / "tasks.py").write_text(ONCE.format(then=then))
    assert expected in fails("worker", "tasks:app", "--processes", "3", "--dsn", dsn, cwd=folder)


def test_a_system_that_refuses_the_first_start_is_one_line(dsn: str, folder: Path) -> None:
    release = folder / "release"
    release.mkdir()
    (release / "tasks.py").write_text(ONCE.format(then="Path.cwd().rename('../before')"))
    line = fails("worker", "tasks:app", "--processes", "3", "--dsn", dsn, cwd=release)
    assert line == f"worker process 1 cannot be started: No such file or directory: {release}"


@pytest.mark.parametrize("count", ["0", "65", "two"])
def test_a_count_that_makes_no_sense_is_wrong_use(count: str) -> None:
    assert "is not a whole number 1 to 64" in fails(
        "worker", "tasks:app", "--processes", count, code=2
    )


def test_a_name_that_leaves_no_room_for_the_number_is_refused(folder: Path) -> None:
    line = fails(
        "worker", "tasks:app", "--processes", "2", "--dsn", NOBODY, cwd=folder, WORKER_ID="w" * 199
    )
    assert "worker_id: at most 198 characters" in line
