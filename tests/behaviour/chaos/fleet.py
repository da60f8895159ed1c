"""Worker processes: started, signalled, and started again after an end that was asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.behaviour.chaos.journal import FOLDER_VARIABLE
from tests.behaviour.rows.table import QUEUE as ROWS_QUEUE

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {
    "HYBRID_RUNNER_HEARTBEAT": "1s",
    "HYBRID_RUNNER_GRACE": "2s",
    "HYBRID_RUNNER_HTTP_PORT": "0",
    "HYBRID_RUNNER_LOG_LEVEL": "info",
    "HYBRID_RUNNER_LOG_FORMAT": "json",
    "HYBRID_RUNNER_TIMEOUT_GRACE": "5s",
}
_ENDS_WITHIN = 60.0


class Member:
    """One place in the fleet. Every other one has a name of its own, which its successor takes
    over.
    """

    def __init__(
        self, number: int, dsn: str, lease: float, folder: Path, complain: Callable[[str], None]
    ) -> None:
        self.number = number
        self.starts = 0
        self._complain = complain
        self._folder = folder
        self._environment = (
            os.environ
            | SETTINGS
            | {
                "HYBRID_RUNNER_DSN": dsn,
                "HYBRID_RUNNER_LEASE": f"{lease}s",
                FOLDER_VARIABLE: str(folder),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            | ({"WORKER_ID": f"chaos-{number}"} if number % 2 else {})
        )
        self._process: asyncio.subprocess.Process | None = None
        self._asked: signal.Signals | None = None
        self._pause = 0.0
        self._last = False

    @property
    def log(self) -> Path:
        """What all processes in this place have logged."""
        return self._folder / f"worker-{self.number}.log"

    async def live(self) -> None:
        """One process after the other, until the last was asked to end."""
        while not self._last:
            with self.log.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "hybrid_runner",
                    "worker",
                    "tests.behaviour.chaos.app:app",
                    "--queue",
                    "default=50",
                    "--queue",
                    "other=20",
                    "--queue",
                    f"{ROWS_QUEUE}=20",
                    cwd=ROOT,
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            self.starts += 1
            code = await self._process.wait()
            self._judge(code)
            asked, self._asked = self._asked, None
            if not self._last:
                await asyncio.sleep(self._pause if asked else 0.5)

    def _judge(self, code: int) -> None:
        """A worker ends when it is told to, and only then; one that was hardly started may not know
        SIGTERM yet.
        """
        match self._asked:
            case None:
                self._complain(
                    f"worker {self.number} ended by itself with code {code}: see {self.log.name}"
                )
            case signal.SIGTERM if code not in (0, -signal.SIGTERM):
                self._complain(
                    f"worker {self.number} ended with code {code} after SIGTERM: see"
                    f" {self.log.name}"
                )

    async def end(self, number: signal.Signals, pause: float) -> None:
        """Send a signal that ends it; the next one comes after a pause. Nothing happens to one that
        has ended.
        """
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self._asked is not signal.SIGKILL:
            self._asked = number
        self._pause = pause
        process.send_signal(number)
        try:
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN)
        except TimeoutError:
            self._complain(
                f"worker {self.number} did not end within {_ENDS_WITHIN:g} s of {number.name}"
            )
            self._asked = signal.SIGKILL
            process.kill()

    async def freeze(self, seconds: float) -> None:
        """Stop the process for so long, then let it go on."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)

    async def leave(self) -> None:
        """End it for good."""
        self._last = True
        await self.end(signal.SIGTERM, 0)

    def kill(self) -> None:
        """End it for good, at once."""
        self._last = True
        if self._process is not None and self._process.returncode is None:
            self._asked = signal.SIGKILL
            self._process.kill()
