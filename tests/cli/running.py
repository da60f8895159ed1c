"""The command as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-m", "hybrid_runner")
NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"
"""Where no server answers."""


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with the package on the path of whatever folder a command starts
    in.
    """
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | more


def hybrid_runner(
    *arguments: str, cwd: Path = ROOT, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `more` goes into its environment."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**more),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def succeeds(*arguments: str, **more: Any) -> str:
    """Run a command that must succeed with nothing on stderr; its stdout."""
    ended = hybrid_runner(*arguments, **more)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


def fails(*arguments: str, code: int = 1, **more: Any) -> str:
    """Run a command that must fail; its one line on stderr, without the program's name."""
    ended = hybrid_runner(*arguments, **more)
    return the_line(ended.returncode, ended.stderr, code)


def the_line(returned: int, stderr: str, code: int) -> str:
    """The one line on stderr, which must be the only one; checks the exit code."""
    assert returned == code, stderr
    assert "Traceback" not in stderr
    assert stderr.count("\n") == 1, stderr
    assert stderr.startswith("hybrid-runner: "), stderr
    return stderr.removeprefix("hybrid-runner: ").rstrip("\n")


class WorkerProcess:
    """A worker whose log lines are read as they come."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.printed = ""
        """What it wrote to stdout."""

    async def says(self, text: str, job: int | None = None) -> dict[str, Any]:
        """Read on until a line (about that job) contains the text."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.lines.append(json.loads(line))
            if text in self.lines[-1]["message"] and job in (None, self.lines[-1].get("job")):
                return self.lines[-1]
        raise AssertionError(f"it ended without saying {text!r}: {self.lines}")

    async def ends(self, number: signal.Signals = signal.SIGTERM, *, silent: bool = True) -> int:
        """Send a signal and wait for the end; the exit code. If silent, stdout must be empty."""
        self.process.send_signal(number)
        return await self.ended(silent=silent)

    async def ended(self, *, silent: bool = True) -> int:
        """Wait for the end without sending a signal (a second one would end it at once); the exit
        code.
        """
        out, err = await self.process.communicate()
        self.lines += [json.loads(line) for line in err.decode().splitlines()]
        self.printed += out.decode()
        assert self.printed == "" or not silent
        return self.process.returncode if self.process.returncode is not None else -1


@asynccontextmanager
async def worker(*arguments: str, cwd: Path, **more: str) -> AsyncIterator[WorkerProcess]:
    """Run `hybrid-runner worker … --json`; it is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "worker",
        *arguments,
        "--json",
        cwd=cwd,
        env=environment(**more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield WorkerProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
