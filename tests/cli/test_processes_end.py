"""hybrid-runner worker --processes: signals to real processes, and parents that are killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.embedded import use_embedded
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.cli.fleets import INSERT, LATE, ONCE, TASKS, fleet, pids, send
from tests.cli.running import NOBODY
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.waiting import until_fetched

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


async def test_a_signal_ends_all_in_order_and_the_pages_say_so(
    dsn: str, database: Connection, folder: Path
) -> None:
    port = str(free_port())
    async with (
        fleet(
            "--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="5", HYBRID_RUNNER_HTTP_PORT=port
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
            *arguments, cwd=folder, HYBRID_RUNNER_GRACE="5", HYBRID_RUNNER_HTTP_PORT=port
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
    async with fleet("--dsn", dsn, cwd=folder, HYBRID_RUNNER_GRACE="5") as process:
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
