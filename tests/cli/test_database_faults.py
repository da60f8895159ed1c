"""Whatever is wrong with the database: exit code 1 and one line."""

from __future__ import annotations

import pytest

from tests.cli.running import NOBODY, fails, hybrid_runner
from tests.support.server import Server

COMMANDS = [
    ("jobs", "list"),
    ("queues", "pause", "q"),
    ("enqueue", "k"),
    ("migrate",),
    ("sql",),
    ("worker", "hybrid_runner.cli.demo.app:app"),
    ("demo", "--json"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_malformed_dsn(command: tuple[str, ...]) -> None:
    assert "the DSN cannot be used" in fails(*command, "--dsn", "nonsense")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_such_database(command: tuple[str, ...], server: Server) -> None:
    assert "does not exist" in fails(*command, "--dsn", server.dsn_of("hybrid_runner_is_not_there"))


@pytest.mark.parametrize(
    "command", [("jobs", "list"), ("enqueue", "k"), ("demo", "--json")], ids=" ".join
)
def test_server_that_does_not_answer_ends_a_command_at_once(command: tuple[str, ...]) -> None:
    assert "does not answer" in fails(*command, "--dsn", NOBODY)


@pytest.mark.parametrize(
    "command", [("migrate",), ("worker", "hybrid_runner.cli.demo.app:app")], ids=" ".join
)
def test_worker_and_migrate_wait_for_the_server_until_the_start_timeout(
    command: tuple[str, ...],
) -> None:
    ended = hybrid_runner(*command, "--dsn", NOBODY, HYBRID_RUNNER_START_TIMEOUT="6")
    assert ended.returncode == 1
    *warnings, line = ended.stderr.splitlines()
    assert all("warning" in warning for warning in warnings)
    assert "trying again in 1 s" in warnings[0]
    assert len(warnings) <= 2  # the third pause would go beyond
    assert line.startswith("hybrid-runner: Postgres does not answer")


@pytest.mark.parametrize(
    "command",
    [("jobs", "list"), ("enqueue", "k"), ("worker", "hybrid_runner.cli.demo.app:app")],
    ids=" ".join,
)
def test_missing_schema_names_the_command_that_helps(
    command: tuple[str, ...], empty_dsn: str
) -> None:
    assert "run `hybrid-runner migrate`" in fails(*command, "--dsn", empty_dsn)


def test_setting_that_cannot_be_is_named() -> None:
    assert "HYBRID_RUNNER_SLOTS" in fails("jobs", "list", HYBRID_RUNNER_SLOTS="many")
    assert "HYBRID_RUNNER_SLOTS" in fails("demo", HYBRID_RUNNER_SLOTS="many")


def test_dsn_of_the_environment_is_used() -> None:
    assert "does not answer" in fails("jobs", "list", HYBRID_RUNNER_DSN=NOBODY)
