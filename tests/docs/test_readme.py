"""What the README shows is run as a newcomer would type it, in the order it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.docs.blocks import ROOT, blocks

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
COMMANDS = [
    shlex.split(line) for block in blocks("README.md", "sh") for line in block.text.splitlines()
]
READY = "listening on"


def of(program: str) -> list[list[str]]:
    """The commands of one program."""
    return [command for command in COMMANDS if command[0] == program]


@pytest.fixture
def environment(dsn: str) -> dict[str, str]:
    """A shell in which `hybrid-runner` is installed and knows its database."""
    return os.environ | {"HYBRID_RUNNER_DSN": dsn, "PYTHONPATH": str(ROOT)}


def installed(command: list[str]) -> list[str]:
    """The same command for this interpreter."""
    assert command[0] == "hybrid-runner"
    return [sys.executable, "-m", "hybrid_runner", *command[1:]]


@contextmanager
def working(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[None]:
    """The worker of the README, from the moment it listens; it must end in order."""
    with subprocess.Popen(
        installed(command), env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        said = []
        try:
            for line in worker.stderr:
                said.append(line)
                if READY in line:
                    break
            else:
                pytest.fail(f"the worker ended: {''.join(said)}")
            yield
        finally:
            worker.terminate()
            worker.stderr.read()  # to its end, or the worker may wait for a reader
        assert worker.wait(120) == 0


def test_there_are_no_commands_but_these() -> None:
    assert {command[0] for command in COMMANDS} == {"make", "pip", "hybrid-runner"}


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert of("make")
    assert all(f"\n{target}:" in makefile for command in of("make") for target in command[1:])


def test_what_pip_installs_is_this_distribution_and_the_extra_exists() -> None:
    [[_, _, here]] = of("pip")
    [published] = re.findall(
        r'`pip install "(.+?)"`', (ROOT / "README.md").read_text(encoding="utf-8")
    )
    for wanted, where in ((here, "."), (published, PROJECT["name"])):
        name, _, extra = wanted.rstrip("]").partition("[")
        assert name == where
        assert extra in PROJECT["optional-dependencies"]


def test_the_demo_installs_no_more_than_that() -> None:
    [[_, _, wanted]] = of("pip")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    _, _, recipe = makefile.partition("\n$(DEMO):")
    assert f"-e '{wanted}'" in recipe.partition("\n\n")[0]
    assert "\ndemo: $(DEMO) " in makefile


def test_the_readme_works_from_the_handler_to_the_result(
    dsn: str, environment: dict[str, str], tmp_path: Path
) -> None:
    [handler] = blocks("README.md", "python")
    [insert] = blocks("README.md", "sql")
    (tmp_path / "app.py").write_text(handler.text, encoding="utf-8")
    worker, enqueue, _ = of("hybrid-runner")

    def run(command: list[str]) -> str:
        return subprocess.check_output(
            installed(command), env=environment, cwd=tmp_path, text=True, timeout=120
        )

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(insert.text.encode())
    with working(worker, environment, tmp_path):
        assert "307200" in run(enqueue)
    with psycopg.connect(dsn) as connection:
        ended = connection.execute(
            "SELECT queue, kind, state::text, result FROM hybrid_runner.archive ORDER BY id"
        ).fetchall()
    assert ended == [("images", "thumbnail", "completed", {"bytes": 307200})] * 2


def test_the_readme_makes_the_tables_on_a_server_of_ones_own(
    empty_dsn: str, environment: dict[str, str]
) -> None:
    *_, migrate = of("hybrid-runner")
    assert migrate[:3] == ["hybrid-runner", "migrate", "--dsn"]
    subprocess.run(
        [*installed(migrate[:3]), empty_dsn],
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
    )
    with psycopg.connect(empty_dsn) as connection:
        assert connection.execute(
            "SELECT to_regclass('hybrid_runner.jobs') IS NOT NULL"
        ).fetchone() == (True,)
