"""What whoever uses an embedded Postgres gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hybrid_runner.embedded import default_data_directory
from tests.embedded.users import Use, ask, log, wait_until_stopped
from tests.support.outside import missing

pytestmark = pytest.mark.timeout(120)


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


def test_a_table_without_a_schema_is_not_made_among_ours(folder: Path, use: Use) -> None:
    postgres = use(folder)
    ask(postgres.dsn, "CREATE SCHEMA IF NOT EXISTS hybrid_runner")
    ask(postgres.dsn, "CREATE TABLE IF NOT EXISTS of_an_application (id int)")
    assert ask(postgres.dsn, "SELECT 'of_an_application'::regclass::oid::regclass::text") == (
        "of_an_application"
    )
    where = "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'of_an_application'"
    assert str(ask(postgres.dsn, where)) == "public"


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
