"""migrate and sql."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psycopg

from hybrid_runner.storage.queries import functions, migrations
from tests.cli.running import COMMAND, NOBODY, environment, fails, hybrid_runner, succeeds

NEWEST = migrations()[-1].version


def test_migrate_says_what_it_applied_and_the_second_time_that_there_was_nothing(
    empty_dsn: str,
) -> None:
    first = succeeds("migrate", "--dsn", empty_dsn).splitlines()
    assert first[0] == "applied 0001 baseline"
    assert first[-1] == f"now at version {NEWEST}"
    assert succeeds("migrate", "--dsn", empty_dsn) == f"already at version {NEWEST}\n"
    assert json.loads(succeeds("migrate", "--json", "--dsn", empty_dsn)) == {
        "version": NEWEST,
        "applied": [],
    }


def test_migrate_warns_of_a_variable_that_is_no_setting(empty_dsn: str) -> None:
    ended = hybrid_runner("migrate", "--dsn", empty_dsn, HYBRID_RUNNER_START_TIMOUT="1s")
    assert ended.returncode == 0
    assert "HYBRID_RUNNER_START_TIMOUT is no setting (did you mean" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_many_processes_migrate_at_once(empty_dsn: str) -> None:
    many = [
        subprocess.Popen(
            [*COMMAND, "migrate", "--json", "--dsn", empty_dsn],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    applied = [
        step["version"]
        for process in many
        for step in json.loads(process.communicate(timeout=120)[0])["applied"]
    ]
    assert [process.returncode for process in many] == [0] * 4
    assert sorted(applied) == [step.version for step in migrations()]


def test_newer_schema_is_refused_in_one_line(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO hybrid_runner.migrations (version, name, checksum) VALUES (9999, 'from the"
            " future', '')"
        )
    for command in ("migrate", "sql"):
        assert "9999" in fails(command, "--dsn", dsn)


def test_the_schema_of_an_unreleased_checkout_is_refused_in_one_line(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE hybrid_runner.migrations SET name = 'jobs'")
    for command in (
        ("migrate",),
        ("sql",),
        ("worker", "hybrid_runner.cli.demo.app:app"),
        ("worker", "hybrid_runner.cli.demo.app:app", "--processes", "2"),
        ("enqueue", "kind"),
        ("jobs", "list"),
        ("jobs", "show", "1"),
        ("queues", "pause", "default"),
        ("signal", "paid:7"),
        ("demo", "--json"),
    ):
        assert "start anew with DROP SCHEMA hybrid_runner CASCADE" in fails(*command, "--dsn", dsn)


def test_sql_without_a_dsn_prints_everything_and_starts_nothing(tmp_path: Path) -> None:
    script = succeeds("sql", HYBRID_RUNNER_DATA_DIR=str(tmp_path / "data"))
    assert all(f"-- ---- {step.version:04d} {step.name}" in script for step in migrations())
    assert not (tmp_path / "data").exists()
    assert json.loads(succeeds("sql", "--json")) == {"from": 0, "to": NEWEST, "sql": script}


def test_sql_goes_on_from_the_databases_version(dsn: str, empty_dsn: str) -> None:
    titles = [
        line.removeprefix("-- ---- ")
        for line in succeeds("sql", "--dsn", dsn).splitlines()
        if line.startswith("-- ---- ")
    ]
    assert titles == [
        "bootstrap",
        "functions",
        *(f"function {name}" for name, _ in functions()),
        "partitions",
        "grants",
        "installed",
    ]
    assert succeeds("sql", "--dsn", empty_dsn) == succeeds("sql")


def test_sql_of_a_server_that_does_not_answer_starts_from_the_beginning() -> None:
    ended = hybrid_runner("sql", "--dsn", NOBODY)
    assert ended.returncode == 0
    assert "printing from the start" in ended.stderr
    assert ended.stdout == succeeds("sql")


def test_what_sql_prints_makes_the_schema(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(succeeds("sql"))
    assert succeeds("migrate", "--dsn", empty_dsn) == f"already at version {NEWEST}\n"


def test_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)  # nobody will ever read
    ended = subprocess.run(
        [*COMMAND, "sql"],
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(write)
    assert ended.returncode == 141
    assert ended.stderr == b""
