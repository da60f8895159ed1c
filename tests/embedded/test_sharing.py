"""Several processes use one embedded Postgres."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from hybrid_runner import OpenInAnotherLoop, Runner
from hybrid_runner.embedded import use_embedded
from tests.embedded.users import OtherProcess, Use, ask, keeper, postmaster, wait_until_stopped

pytestmark = pytest.mark.timeout(120)


def test_second_process_shares_the_server_and_outlives_the_first(
    folder: Path, use: Use, other: OtherProcess
) -> None:
    started, dsn = other.wait_until_served()
    mine = use(folder)
    assert (started, mine.started, mine.dsn) == (True, False, dsn)
    before = postmaster(folder)
    other.process.communicate()
    assert ask(mine.dsn, "SELECT 1") == 1
    assert postmaster(folder) == before


def test_keeper_is_out_of_reach_of_ctrl_c_and_not_our_child(folder: Path, use: Use) -> None:
    use(folder)
    assert os.getsid(keeper(folder)) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(keeper(folder), os.WNOHANG)


def test_four_processes_at_once_on_a_new_folder_share_one_server(empty: Path) -> None:
    processes = [OtherProcess(empty) for _ in range(4)]
    try:
        answers = [process.wait_until_served() for process in processes]
        assert sorted(started for started, _ in answers) == [False, False, False, True]
        assert len({dsn for _, dsn in answers}) == 1
        assert len({ask(dsn, "SELECT pg_postmaster_start_time()") for _, dsn in answers}) == 1
    finally:
        for process in processes:
            process.kill()


def test_user_arriving_while_the_server_stops_gets_a_living_one(folder: Path) -> None:
    for _ in range(5):
        postgres = use_embedded(folder)
        assert ask(postgres.dsn, "SELECT 1") == 1
        postgres.close()


def test_whoever_stops_a_server_of_its_own_finds_its_folder_left_alone(empty: Path) -> None:
    folder = empty / "postgres"
    folder.mkdir(mode=0o755)
    for _ in range(2):
        assert use_embedded(folder).stop()
        assert not (folder / "data" / "postmaster.pid").exists()
        shutil.rmtree(folder / "data")


def test_a_server_that_somebody_else_uses_goes_on(
    folder: Path, other: OtherProcess, use: Use
) -> None:
    other.wait_until_served()
    assert not use(folder).stop(within=0.5)
    assert ask(use(folder).dsn, "SELECT 1") == 1


def test_path_that_cannot_hold_a_socket_gets_a_short_private_one(
    own: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    data = own / "data"
    for name in ("l" * 120, "a,b 'c' \"d\" é"):
        directory = own / name
        directory.mkdir()
        data = data.rename(directory / "data")
        first = use(directory)
        with monkeypatch.context() as elsewhere:  # another environment finds the same socket
            elsewhere.setenv("TMPDIR", str(own))
            second = use(directory)
        assert second.dsn == first.dsn
        assert ask(first.dsn, "SELECT 1") == 1
        first.close()
        second.close()
        wait_until_stopped(directory)
        shutil.rmtree(unquote(first.dsn.partition("?host=")[2].partition("&")[0]))


async def test_a_runner_that_another_loop_may_not_close_keeps_its_postgres(empty: Path) -> None:
    async with Runner(data_dir=empty) as app:
        dsn, embedded = app.dsn, app.embedded
        assert embedded is not None
        with pytest.raises(OpenInAnotherLoop):
            await asyncio.to_thread(asyncio.run, app.close())
        assert (app.dsn, app.embedded) == (dsn, embedded)
        assert (await app.enqueue("hello")).enqueued == "inserted"
    assert app.embedded is None
    wait_until_stopped(empty / "postgres")
