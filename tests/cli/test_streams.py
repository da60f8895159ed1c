"""Standard streams that are closed, full, or no longer read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, NOBODY, environment, hybrid_runner, succeeds


def shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell would with this behind it."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [("jobs", "list"), ("enqueue", "k"), ("migrate",), ("sql",), ("--help",)],
    ids=" ".join,
)
def test_closed_stdout_is_like_devnull(command: tuple[str, ...], dsn: str) -> None:
    ended = shell(">&-", *command, *(() if command == ("--help",) else ("--dsn", dsn)))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_demo_does_without_its_stdout(dsn: str) -> None:
    ended = shell(">&-", "demo", "--dsn", dsn)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("redirection", ["2>&-", "<&- >&- 2>&-"])
def test_a_worker_does_without_its_streams(redirection: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from hybrid_runner import Runner\napp = Runner()\n")
    ended = subprocess.run(
        [
            "sh",
            "-c",
            f'exec "$@" {redirection}',
            "sh",
            *COMMAND,
            "worker",
            "tasks:app",
            "--dsn",
            NOBODY,
        ],
        env=environment(HYBRID_RUNNER_START_TIMEOUT="0.1"),
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")  # not -6: an abort


def test_closed_stdin_is_empty(dsn: str) -> None:
    ended = shell("<&-", "enqueue", "k", "-", "--dsn", dsn)
    assert ended.returncode == 2
    assert "the payload is not JSON" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize(
    "command",
    [("jobs", "list"), ("jobs", "list", "--json"), ("sql",), ("demo", "--json")],
    ids=" ".join,
)
def test_full_disk_is_one_line(command: tuple[str, ...], dsn: str) -> None:
    ended = shell(">/dev/full", *command, "--dsn", dsn)
    assert ended.returncode == 1
    assert ended.stderr == "hybrid-runner: cannot write to stdout: No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="it does not run there")
def test_the_embedded_postgres_is_announced_by_what_runs_and_not_by_short_commands(
    tmp_path: Path,
) -> None:
    data = str(tmp_path / "data")
    assert succeeds("jobs", "list", HYBRID_RUNNER_DATA_DIR=data) == "no jobs\n"
    assert "psql" in hybrid_runner("migrate", HYBRID_RUNNER_DATA_DIR=data).stderr
    assert (
        "psql"
        in hybrid_runner("jobs", "list", "--log-level", "info", HYBRID_RUNNER_DATA_DIR=data).stderr
    )
