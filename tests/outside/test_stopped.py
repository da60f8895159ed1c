"""Tests that are stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
TEST = """
import os, pathlib, signal, pytest

@pytest.fixture
def started():
    yield
    pathlib.Path("given_back").touch()

def test_it(started):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
"""


def test_on_sigterm_fixtures_end_what_they_started(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(tmp_path),
        "--timeout",
        "30",
        "test_it.py",
    ]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "KeyboardInterrupt" in ended.stdout, ended.stdout + ended.stderr
    assert (tmp_path / "given_back").exists()


SLOW = """
import pathlib, time, pytest

@pytest.fixture
def started():
    yield
    pathlib.Path("given_back").touch()

@pytest.mark.parametrize("number", range(4))
def test_it(started, number):
    pathlib.Path("began").touch()
    time.sleep(600)
"""


def test_on_sigterm_the_processes_in_which_tests_run_end_too(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(tmp_path),
        "-n",
        "2",
        "test_it.py",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as running:
        wait_until((tmp_path / "began").exists)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=120)
    assert "KeyboardInterrupt" in said
    assert (tmp_path / "given_back").exists()
