"""hybrid-runner worker --processes: real processes, a real Postgres, and real deaths."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.embedded import use_embedded
from hybrid_runner.storage.connections.connections import Connection, connect
from tests.cli.fleets import ARCHIVED, INSERT, RESULTS, TASKS, fleet, pids, send
from tests.cli.running import NOBODY, fails
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.server import Server
from tests.support.waiting import until_fetched

ONCE = """
import os
from pathlib import Path
from hybrid_runner import Runner
from tests.support.waiting import until_fetched

first = not Path("imported").exists()
Path("imported").touch()
{then}
app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
LATE = "import atexit, signal; atexit.register(lambda: os.kill(os.getpid(), signal.{number}))"
"""A signal to a process that is about to end anyway."""
RUNNING = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'"
ATTEMPTS = "SELECT DISTINCT state::text, attempt FROM hybrid_runner.jobs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


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


# --- ends


async def test_a_signal_ends_all_in_order_and_the_pages_say_so(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    async with (
        fleet(
            "--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="1", HYBRID_RUNNER_HTTP_PORT=port
        ) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        children = await pids(client)
        process.process.send_signal(signal.SIGTERM)
        assert (await client.until("/ready", 503)).body["phase"] == "stopping"
        health = await client.get("/health")
        assert (health.status, health.body["phase"]) == (200, "stopping")
        await process.all_gone()
        assert await process.process.wait() == 0
    assert not any(is_alive(child) for child in children)
    assert {
        tuple(row)
        for row in await database.fetch("SELECT state::text, attempt FROM hybrid_runner.jobs")
    } == {("queued", 0)}
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0


async def test_ctrl_c_reaches_each_child_once(dsn: str, database: Connection, folder: Path) -> None:
    """A terminal sends it to the whole group, of which the children are not part."""
    async with fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="0.5") as process:
        await process.works()
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        os.killpg(process.process.pid, signal.SIGINT)
        await process.all_gone()
        assert await process.process.wait() == 0
    assert process.said("has stopped") == 2
    assert await database.fetchval(RUNNING) == 0


@pytest.mark.parametrize("first", ["the parent", "its children"])
async def test_a_stop_of_the_whole_control_group_ends_all_in_order(
    first: str, dsn: str, database: Connection, folder: Path
) -> None:
    """As systemd stops a service: each process gets the signal, and a child gets it through its
    parent besides.
    """
    port = str(free_port())
    arguments = ("--dsn", dsn, "--queue", "default=1")  # one job each
    async with (
        fleet(
            *arguments, cwd=folder, HYBRID_RUNNER_GRACE="1", HYBRID_RUNNER_HTTP_PORT=port
        ) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        children, parent = await pids(client), [process.process.pid]
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        order = (parent, children) if first == "the parent" else (children, parent)
        send(signal.SIGTERM, *order[0])
        await process.says("jobs are running")
        await process.says("jobs are running")
        send(signal.SIGTERM, *order[1])
        send(signal.SIGCONT, *parent, *children)
        send(signal.SIGINT, *children)
        send(signal.SIGTERM, *children)
        await process.all_gone()
        assert await process.process.wait() == 0
    assert process.said("jobs outlast the grace") == 2
    assert process.said("has stopped") == 2
    assert [tuple(row) for row in await database.fetch(ATTEMPTS)] == [("queued", 0)]


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGQUIT"])
async def test_a_signal_to_a_child_that_has_stopped_changes_nothing(
    number: str, dsn: str, folder: Path
) -> None:
    (folder / "tasks.py").write_text(
        ONCE.format(then=f"if not first: {LATE.format(number=number)}")
    )
    async with fleet("--dsn", dsn, cwd=folder) as process:
        await process.works()
        assert await process.ends() == 0
    assert process.said("has stopped") == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGQUIT, 131)])
async def test_a_child_that_did_not_stop_in_order_is_seen_in_the_exit_code(
    number: signal.Signals, code: int, dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    async with (
        fleet("--dsn", dsn, cwd=folder, WORKER_ID="w", HYBRID_RUNNER_HTTP_PORT=port) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        children = await pids(client)
        await database.execute(INSERT, "wait", 1)
        await until_fetched(database, RUNNING, 1)
        name = await database.fetchval("SELECT worker_id FROM hybrid_runner.jobs")
        process.process.send_signal(signal.SIGTERM)
        await process.says("1 jobs are running")
        send(number, children[int(name.removeprefix("w-")) - 1])
        await process.all_gone()
        assert await process.process.wait() == code
    end = "was ended by SIGKILL" if number == signal.SIGKILL else "ended with exit code 131"
    assert process.said(f"{end} during the stop: other workers rescue its jobs") == 1
    assert process.said("has stopped") == 1
    assert await database.fetchval(RUNNING) == 1


async def test_a_second_signal_ends_all_at_once(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    async with (
        fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_HTTP_PORT=port) as process,
        browser(int(port)) as client,
    ):
        await process.works()
        children = await pids(client)
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        process.process.send_signal(signal.SIGTERM)
        await process.says("jobs are running")
        await process.says("jobs are running")
        assert await process.ends(signal.SIGTERM) == 128 + signal.SIGTERM
    assert not any(is_alive(child) for child in children)
    assert process.said("one more SIGTERM: ending at once") == 1
    assert process.said("ended with exit code 131 during the stop") == 2
    assert await database.fetchval(RUNNING) == 2


async def test_a_signal_while_waiting_for_the_server_ends_in_order(folder: Path) -> None:
    async with fleet("--dsn", NOBODY, cwd=folder) as process:
        await process.says("trying again")
        assert await process.ends() == 0


async def test_a_signal_during_the_start_of_the_children_ends_in_order(
    dsn: str, folder: Path
) -> None:
    (folder / "tasks.py").write_text(ONCE.format(then="print('imported', flush=True)"))
    async with fleet("--dsn", dsn, cwd=folder) as process:
        assert process.process.stdout is not None
        for _ in range(2):  # by the parent, and by a child
            await process.process.stdout.readline()
        process.process.send_signal(signal.SIGTERM)
        await process.all_gone()
        assert await process.process.wait() == 0


async def test_children_end_with_a_killed_parent_and_put_their_jobs_back(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="0.2") as process:
        await process.works()
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        process.process.kill()
        await process.all_gone()
    assert process.said("the supervising process has gone: stopping") == 2
    assert process.said("has stopped") == 2
    assert {
        tuple(row)
        for row in await database.fetch("SELECT state::text, attempt FROM hybrid_runner.jobs")
    } == {("queued", 0)}
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0


async def test_a_parent_killed_during_the_stop_is_no_second_signal(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="1") as process:
        await process.works()
        await database.execute(INSERT, "wait", 2)
        await until_fetched(database, RUNNING, 2)
        process.process.send_signal(signal.SIGTERM)
        await process.says("jobs are running")
        await process.says("jobs are running")
        process.process.kill()
        await process.all_gone()
    assert process.said("has stopped") == 2
    assert await database.fetchval(RUNNING) == 0


async def test_the_embedded_postgres_outlives_a_killed_parent_until_the_jobs_are_back(
    folder: Path,
) -> None:
    async with fleet(
        cwd=folder, HYBRID_RUNNER_DATA_DIR=str(folder), HYBRID_RUNNER_GRACE="0.2"
    ) as process:
        await process.works()
        assert process.said("using the embedded Postgres") == 1
        postgres = use_embedded(folder / "postgres")
        database = await connect(postgres.dsn)
        try:
            await database.execute(INSERT, "wait", 2)
            await until_fetched(database, RUNNING, 2)
            await database.close()
            postgres.close()  # from here on only the children hold it
            process.process.kill()
            await process.all_gone()
            postgres = use_embedded(folder / "postgres")
            database = await connect(postgres.dsn)
            assert (
                await database.fetchval(
                    "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued'"
                )
                == 2
            )
        finally:
            await database.close()
            postgres.close()
    assert process.said("could not sign off") == 0


# --- starts that cannot be


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
