"""A worker of several processes behind one parent, and questions to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.running import COMMAND, WorkerProcess, environment
from tests.support.pages import Browser

TASKS = """
import asyncio
import os
from hybrid_runner import Runner

app = Runner()

@app.job("pid")
async def pid(payload: dict) -> int:
    await asyncio.sleep(0.05)
    return os.getpid()

@app.job("core", executor="process")
def core(payload: dict) -> int:
    return os.getppid()

@app.job("wait")
async def wait(payload: dict) -> None:
    await asyncio.sleep(300)
"""
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT $1, '{}' FROM generate_series(1,"
    " $2::int)"
)
RESULTS = "SELECT DISTINCT result::int FROM hybrid_runner.archive WHERE kind = $1"
ARCHIVED = "SELECT count(*) FROM hybrid_runner.archive"
ONCE = """
import os
from pathlib import Path
from hybrid_runner import Runner
from tests.support.waiting import until_fetched

first = not Path("imported").exists()
Path("imported").touch()
{then}
app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
"""Tasks whose import does {then}; `first` is true in the process that imports them first."""
GATE = """
import pathlib, time
while not pathlib.Path("gate").exists():
    time.sleep(0.01)
"""
"""Before tasks: processes that import them wait until `open_gate` lets them."""
LATE = "import atexit, signal; atexit.register(lambda: os.kill(os.getpid(), signal.{number}))"
"""A signal to a process that is about to end anyway."""


class FleetProcess(WorkerProcess):
    """The parent; its children write to its stderr too."""

    async def works(self) -> None:
        """Wait until every child works and hears."""
        heard, working = 0, False
        while heard < 2 or not working:
            text = (await self.says(""))["message"]
            heard += text.startswith("listening on")
            working = working or "worker processes work" in text

    async def all_gone(self) -> None:
        """Wait until the last process that can write to stderr has ended."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.lines.append(json.loads(line))

    def said(self, text: str) -> int:
        """How many lines have the text."""
        return sum(text in line["message"] for line in self.lines)


@asynccontextmanager
async def fleet(*arguments: str, cwd: Path, **more: str) -> AsyncIterator[FleetProcess]:
    """Run `hybrid-runner worker tasks:app --processes 2` in a session of its own; none of it is
    left.
    """
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "worker",
        "tasks:app",
        "--processes",
        "2",
        *arguments,
        "--json",
        cwd=cwd,
        env=environment(**more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield FleetProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def pids(client: Browser) -> list[int]:
    """The children's process ids, in the order of their numbers."""
    return [process["pid"] for process in (await client.get("/health")).body["processes"]]


def close_gate(folder: Path) -> None:
    """From now on no process gets further than its imports: it is missing until the test has
    seen that.
    """
    (folder / "tasks.py").write_text(GATE + TASKS)


def open_gate(folder: Path) -> None:
    (folder / "gate").touch()


def send(number: signal.Signals, *to: int) -> None:
    for pid in to:
        os.kill(pid, number)
