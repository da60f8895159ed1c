"""Ctrl-C at any moment of the start: exit code 130, and nothing is printed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hybrid_runner
from tests.cli.running import ROOT, environment

SCRIPT = Path(sys.executable).parent / "hybrid-runner"
MOMENTS = (
    "hybrid_runner.cli.output",
    "hybrid_runner.cli.parsing",
    "hybrid_runner.cli",
    "asyncio.events",
    "asyncio",
    "pydantic_core",
    "pydantic.main",
    "asyncpg.protocol.protocol",
    "hybrid_runner.model.jobs",
    "hybrid_runner.handlers.registry",
    "hybrid_runner.runner",
    "hybrid_runner.cli.session",
)


@contextmanager
def starting(*command: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command that writes to stderr what it imports."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", *command],
        cwd=ROOT,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said_after(process: subprocess.Popen[str], module: str) -> list[str]:
    """Interrupt the process once that module is imported; what it then writes besides imports."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            process.send_signal(signal.SIGINT)
            return [line for line in process.stderr if not line.startswith("import time:")]
    pytest.fail(f"{module} was not imported")


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes connections and says nothing, so that a command does not end by
    itself.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://nobody@127.0.0.1:{server.getsockname()[1]}/nothing"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "command", [("-m", "hybrid_runner"), (str(SCRIPT),)], ids=["module", "script"]
)
def test_an_interrupted_start_ends_with_130_and_says_nothing(
    command: tuple[str, ...], moment: str, silent_server: str
) -> None:
    with starting(*command, "jobs", "list", "--dsn", silent_server) as process:
        said = said_after(process, moment)
        assert (process.wait(120), said) == (130, [])


def test_a_job_in_the_background_is_not_interrupted_while_it_starts() -> None:
    """A shell without job control lets its background jobs ignore Ctrl-C, which is meant for
    others.
    """
    script = (
        "import signal, runpy; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        " runpy.run_module('hybrid_runner', run_name='__main__')"
    )
    with starting("-c", script, "--version") as process:
        said_after(process, "hybrid_runner.cli.parsing")
        assert process.wait(120) == 0


def test_a_worker_that_was_interrupted_in_its_imports_says_nothing(
    dsn: str, tmp_path: Path
) -> None:
    # It takes so long that the interrupt comes while it is imported.
    (tmp_path / "tasks.py").write_text(
        "import time\nfrom hybrid_runner import Runner\napp = Runner()\ntime.sleep(300)\n",
        encoding="utf-8",
    )
    with starting(
        "-m",
        "hybrid_runner",
        "worker",
        "tasks:app",
        "--dsn",
        dsn,
        HYBRID_RUNNER_HTTP_PORT="0",
        PYTHONPATH=str(tmp_path),
    ) as process:
        said = said_after(process, "hybrid_runner.supervisor.fleet")
        assert (process.wait(120), said) == (130, [])


def test_each_public_name_can_be_imported_and_is_listed() -> None:
    for name in hybrid_runner.__all__:
        assert getattr(hybrid_runner, name) is not None
    assert {*hybrid_runner.__all__} <= {*dir(hybrid_runner)}
    with pytest.raises(AttributeError, match="no attribute 'Jop'"):
        hybrid_runner.Jop  # type: ignore[attr-defined]  # noqa: B018  # that is what is tested


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "import hybrid_runner",
            {"asyncio", "pydantic", "asyncpg", "opentelemetry", "hybrid_runner.runner"},
        ),
        (
            "from hybrid_runner import Runner",
            {
                "hybrid_runner.bench",
                "hybrid_runner.embedded",
                "hybrid_runner.upkeep",
                "hybrid_runner.web.server",
                "hybrid_runner.worker.worker",
                "aiohttp",
                "matplotlib",
                "opentelemetry.sdk",
            },
        ),
        (
            "from hybrid_runner.cli import main; main(['--help'])",
            {"asyncio", "pydantic", "asyncpg", "hybrid_runner.runner"},
        ),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, unwanted: set[str]) -> None:
    told = (
        f"import sys, json, io; sys.stdout = io.StringIO(); {code};"
        " print(json.dumps(sorted(sys.modules)), file=sys.__stdout__)"
    )
    modules = json.loads(
        subprocess.check_output([sys.executable, "-c", told], env=environment(), text=True)
    )
    assert unwanted & {*modules} == set()
