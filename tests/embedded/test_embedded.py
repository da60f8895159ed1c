"""The embedded Postgres: real processes, really killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import asyncpg
import pytest

import hybrid_runner
from hybrid_runner.embedded import (
    EmbeddedError,
    EmbeddedPostgres,
    default_data_directory,
    locks,
    use_embedded,
)
from hybrid_runner.embedded.account import NOBODY, WITHOUT_NAMESPACES, Account, accepted_account
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE, find_binaries
from tests.support.outside import missing
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(30)
PATIENCE = 15.0
USER = """
import pathlib, sys
from hybrid_runner.embedded import use_embedded
from tests.support.waiting import wait_until
postgres = use_embedded(pathlib.Path(sys.argv[1]))
print(postgres.started, postgres.dsn, flush=True)
sys.stdin.read()
"""
Use = Callable[..., EmbeddedPostgres]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about running as root")


class OtherProcess:
    """A second process that uses the folder until its standard input ends."""

    def __init__(self, directory: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(hybrid_runner.__file__).parent.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def wait_until_served(self) -> tuple[bool, str]:
        """Whether it started the server, and its DSN."""
        assert self.process.stdout is not None
        started, dsn = self.process.stdout.readline().split()
        return started == "True", dsn

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def ask(dsn: str, statement: str) -> Any:
    async def session() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(session())


def wait_until_stopped(directory: Path) -> None:
    """Keeper gone and no process of Postgres left, by their locks."""
    for name in ("keeper", "server"):
        lock = locks.hold(directory / f"{name}.lock", deadline=time.monotonic() + PATIENCE)
        assert lock is not None, f"{name} still lives"
        locks.release(lock)


def postmaster(directory: Path) -> int:
    return int((directory / "data/postmaster.pid").read_text().split()[0])


def keeper(directory: Path) -> int:
    return int((directory / "keeper.lock").read_text())


def log(directory: Path) -> str:
    return (directory / "postgres.log").read_text()


def new_folder() -> Iterator[Path]:
    """Short enough for a socket, open enough for uid 65534."""
    directory = Path(tempfile.mkdtemp(prefix="hr-"))
    directory.chmod(0o755)
    yield directory
    wait_until_stopped(directory)
    shutil.rmtree(directory)


@pytest.fixture
def empty() -> Iterator[Path]:
    """A folder nobody used yet."""
    yield from new_folder()


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    for directory in new_folder():
        use_embedded(directory).close()
        yield directory


@pytest.fixture
def folder(template: Path) -> Iterator[Path]:
    """A folder with a database that other tests use too: leave it able to start."""
    wait_until_stopped(template)
    (template / "postgres.log").unlink()
    yield template
    wait_until_stopped(template)


@pytest.fixture
def own(empty: Path, template: Path) -> Path:
    """A folder with a database to change and to break."""
    wait_until_stopped(template)
    shutil.copytree(template / "data", empty / "data")
    return empty


@pytest.fixture
def use() -> Iterator[Callable[..., EmbeddedPostgres]]:
    """`use_embedded`, closed when the test is over."""
    shares: list[EmbeddedPostgres] = []

    def use(*arguments: Any, **options: Any) -> EmbeddedPostgres:
        shares.append(use_embedded(*arguments, **options))
        return shares[-1]

    yield use
    for share in shares:
        share.close()


@pytest.fixture
def other(folder: Path) -> Iterator[OtherProcess]:
    process = OtherProcess(folder)
    yield process
    process.kill()


def test_first_use_makes_a_database_and_last_close_stops_it_cleanly(empty: Path, use: Use) -> None:
    postgres = use(empty / "made" / "on the way")
    assert postgres.started
    assert (
        ask(postgres.dsn, "SELECT current_user || '@' || current_database()")
        == "hybrid_runner@hybrid_runner"
    )
    postgres.close()
    postgres.close()
    wait_until_stopped(postgres.directory)
    assert not (postgres.directory / "data/postmaster.pid").exists()
    assert "database system is shut down" in log(postgres.directory).splitlines()[-2]


def test_psql_line_works_in_a_shell(folder: Path, use: Use) -> None:
    postgres = use(folder)
    answer = subprocess.run(
        f"{postgres.psql} -Atc 'SELECT 41 + 1'",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode == 127:
        missing("no psql on this machine")
    assert answer.stdout == "42\n", answer.stderr


def test_no_network_and_no_stranger_gets_in(folder: Path, use: Use) -> None:
    postgres = use(folder, settings={"listen_addresses": "*", "unix_socket_permissions": "0777"})
    assert ask(postgres.dsn, "SHOW listen_addresses") == ""
    assert (folder / "run").stat().st_mode & 0o777 == 0o700
    assert (folder / "run/.s.PGSQL.5432").stat().st_mode & 0o777 == 0o700


def test_environment_of_the_user_does_not_lead_astray(
    folder: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGPORT": "1",
        "PGHOST": "nowhere",
        "PGDATA": "/nowhere",
        "PGUSER": "nobody",
    }.items():
        monkeypatch.setenv(name, value)
    assert ask(use(folder).dsn, "SELECT 1") == 1


def test_settings_are_those_of_whoever_starts_it(folder: Path, use: Use) -> None:
    first = use(folder, settings={"work_mem": "7MB"})
    second = use(folder, settings={"work_mem": "8MB"})
    assert (first.started, second.started) == (True, False)
    assert ask(second.dsn, "SHOW work_mem") == "7MB"


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
    for pid in (keeper(folder), postmaster(folder)):
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


def test_socket_directory_of_a_stranger_is_refused(folder: Path, use: Use) -> None:
    (folder / "run").chmod(0o755)
    with pytest.raises(EmbeddedError, match="mode 0700"):
        use(folder)
    (folder / "run").chmod(0o700)


def test_other_major_version_is_named(empty: Path, use: Use) -> None:
    (empty / "data").mkdir()
    (empty / "data/PG_VERSION").write_text("13\n")
    with pytest.raises(
        EmbeddedError, match=r"was made by Postgres 13, the binaries are Postgres \d+: set "
    ):
        use(empty)


def test_unknown_setting_names_the_log_and_its_last_line(folder: Path, use: Use) -> None:
    with pytest.raises(
        EmbeddedError,
        match=rf'{folder}/postgres.log: .*unrecognized configuration parameter "wrok_mem"',
    ):
        use(folder, settings={"wrok_mem": "1MB"})


def test_missing_binaries_say_what_to_install(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BINARIES_VARIABLE, str(empty))
    with pytest.raises(
        EmbeddedError, match=r'set HYBRID_RUNNER_DSN, or pip install "hybrid-runner\[embedded\]"'
    ):
        use(empty)


def test_unusable_folder_is_one_line(empty: Path, use: Use) -> None:
    (empty / "file").touch()
    with pytest.raises(
        EmbeddedError, match=r"^cannot keep a database in .*/file/x \(not a directory\): set .*$"
    ):
        use(empty / "file/x")
    (empty / "PG_VERSION").touch()
    with pytest.raises(EmbeddedError, match="data directory of another Postgres"):
        use(empty)


def test_overlong_log_is_set_aside(folder: Path, use: Use) -> None:
    with (folder / "postgres.log").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    use(folder)
    assert (folder / "postgres.log").stat().st_size < 1024 * 1024
    (folder / "postgres.log.1").unlink()


def test_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    monkeypatch.delenv("HYBRID_RUNNER_DATA_DIR", raising=False)
    assert default_data_directory() == Path("/x/hybrid-runner/postgres")
    monkeypatch.setenv("HYBRID_RUNNER_DATA_DIR", "/y")
    assert default_data_directory() == Path("/y/postgres")


@as_root
def test_root_without_namespaces_and_a_private_home_uses_var_lib(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.chmod(0o700)
    for name in ("XDG_DATA_HOME", "HYBRID_RUNNER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    assert default_data_directory() == Path("/var/lib/hybrid-runner/postgres")


@as_root
def test_root_in_a_namespace_and_as_nobody_open_the_same_data(
    folder: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get(WITHOUT_NAMESPACES):
        pytest.skip(f"{WITHOUT_NAMESPACES} says to do without")
    if accepted_account() is not Account.NAMESPACE:
        missing("user namespaces are refused here")
    postgres = use(folder)
    ask(postgres.dsn, "CREATE TABLE kept_by_root AS SELECT 7 AS number")
    for owner, without in ((0, ""), (NOBODY, "1"), (0, "")):
        postgres.close()
        wait_until_stopped(folder)
        monkeypatch.setenv(WITHOUT_NAMESPACES, without)
        postgres = use(folder)
        assert Path(f"/proc/{postmaster(folder)}").stat().st_uid == owner
        assert (folder / "data/base").stat().st_uid == owner
        assert ask(postgres.dsn, "SELECT number FROM kept_by_root") == 7


@as_root
def test_root_as_nobody_starts_from_nothing_with_binaries_it_cannot_reach(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = empty / "private"
    private.mkdir(mode=0o700)
    programs = find_binaries().directory
    package = programs.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        (private / part.name).symlink_to(part)
    monkeypatch.setenv(BINARIES_VARIABLE, str(private / programs.relative_to(package.parent)))
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    postgres = use(empty)
    assert ask(postgres.dsn, "SELECT 1") == 1
    executable = Path(f"/proc/{postmaster(empty)}/exe").readlink()
    assert str(executable).startswith(f"{empty}/binaries-")
    os.kill(
        keeper(empty), signal.SIGKILL
    )  # a change of user must not have cleared the tie to the keeper
    wait_until_stopped(empty)


@as_root
def test_folder_uid_65534_cannot_enter_is_one_line(
    empty: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.chmod(0o700)
    monkeypatch.setenv(WITHOUT_NAMESPACES, "1")
    with pytest.raises(
        EmbeddedError, match=f"uid 65534 cannot enter {empty}: set HYBRID_RUNNER_DATA_DIR"
    ):
        use(empty)
