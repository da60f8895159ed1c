"""Users, keepers and servers are killed: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hybrid_runner.embedded import EmbeddedError
from tests.embedded.users import OtherProcess, Use, ask, keeper, log, postmaster, wait_until_stopped
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)


def test_server_stops_after_its_only_user_is_killed(folder: Path, other: OtherProcess) -> None:
    other.wait_until_served()
    other.kill()
    wait_until_stopped(folder)
    assert not (folder / "data/postmaster.pid").exists()


def test_killed_keeper_takes_postgres_along_and_loses_no_data(folder: Path, use: Use) -> None:
    first = use(folder)
    ask(first.dsn, "CREATE TABLE kept AS SELECT 7 AS number")
    os.kill(keeper(folder), signal.SIGKILL)
    again = use(folder)  # at once: it has to wait for the dying server by itself
    assert again.started
    assert ask(again.dsn, "SELECT number FROM kept") == 7
    os.kill(keeper(folder), signal.SIGKILL)
    wait_until_stopped(folder)


def test_everything_killed_at_once_is_recovered(folder: Path, use: Use) -> None:
    first = use(folder)
    ask(first.dsn, "CREATE TABLE kept_by_wal AS SELECT 7 AS number")
    pids = keeper(folder), postmaster(folder)
    # Neither of them may notice that the other one is dead, and act on it.
    os.kill(pids[0], signal.SIGSTOP)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGKILL)
    assert ask(use(folder).dsn, "SELECT number FROM kept_by_wal") == 7
    assert "was interrupted" in log(folder) or "not properly shut down" in log(folder)


def test_killed_postmaster_is_started_again_by_the_keeper(folder: Path, use: Use) -> None:
    postgres = use(folder)
    ask(postgres.dsn, "CREATE TABLE kept_by_keeper AS SELECT 7 AS number")
    before, kept_by = postmaster(folder), keeper(folder)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: "ended by itself" in log(folder))
    again = use(folder)
    assert not again.started
    assert ask(postgres.dsn, "SELECT number FROM kept_by_keeper") == 7
    assert postmaster(folder) != before
    assert keeper(folder) == kept_by


def test_keeper_gives_up_a_server_that_cannot_start(folder: Path, use: Use) -> None:
    use(folder)
    (folder / "data/global/pg_control").rename(folder / "pg_control")
    os.kill(postmaster(folder), signal.SIGKILL)
    wait_until_stopped(folder)
    with pytest.raises(
        EmbeddedError, match=rf"did not start; see {folder}/postgres.log: .*pg_control"
    ):
        use(folder)
    (folder / "pg_control").rename(folder / "data/global/pg_control")


def test_killed_initdb_leaves_nothing_broken(empty: Path, use: Use) -> None:
    process = OtherProcess(empty)
    wait_until((empty / "data.new/PG_VERSION").exists)
    os.kill(keeper(empty), signal.SIGKILL)
    _, complaint = process.process.communicate()
    assert "keeper of the embedded Postgres died" in complaint
    assert not (empty / "data").exists()
    assert ask(use(empty).dsn, "SELECT 1") == 1


def test_stale_pid_file_that_names_a_living_stranger_does_not_stop_postgres(
    folder: Path, use: Use
) -> None:
    (folder / "data/postmaster.pid").write_text(
        f"{os.getpid()}\n{folder}/data\n1\n5432\n{folder}/run\n\n0 0\nready\n"
    )
    assert ask(use(folder).dsn, "SELECT 1") == 1
