"""The members of the fleet, each a worker process; one after the other is killed and started
again.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.behaviour.monitors.fakes import ROOT

SETTINGS = {
    "HYBRID_RUNNER_HEARTBEAT": "1s",
    "HYBRID_RUNNER_GRACE": "10s",
    "HYBRID_RUNNER_HTTP_PORT": "0",
    "HYBRID_RUNNER_LOG_FORMAT": "json",
}


class Member:
    """One place in the fleet."""

    def __init__(self, number: int, dsn: str, lease: float, folder: Path) -> None:
        self._log = folder / f"worker-{number}.log"
        self._environment = (
            os.environ
            | SETTINGS
            | {
                "HYBRID_RUNNER_DSN": dsn,
                "HYBRID_RUNNER_LEASE": f"{lease}s",
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
        )
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "hybrid_runner",
                "worker",
                "tests.behaviour.monitors.app:app",
                cwd=ROOT,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def end(self, how: signal.Signals) -> tuple[str, int]:
        """Its process id, and with which code it ended."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        code = await self._process.wait()
        return str(self._process.pid), code


class Fleet:
    def __init__(self, members: int, dsn: str, lease: float, folder: Path) -> None:
        self._members = [Member(number, dsn, lease, folder) for number in range(members)]
        self.killed: set[str] = set()
        """Process ids."""
        self.complaints: list[str] = []

    async def start(self) -> None:
        for member in self._members:
            await member.start()

    async def kill_for(self, seconds: float, every: float, chance: random.Random) -> None:
        """Kill one after the other; each is back a moment later."""
        end = time.monotonic() + seconds
        while (pause := min(chance.uniform(0.5, 1.5) * every, end - time.monotonic())) > 0:
            await asyncio.sleep(pause)
            member = chance.choice(self._members)
            pid, code = await member.end(signal.SIGKILL)
            self.killed.add(pid)
            if code != -signal.SIGKILL:
                self.complaints.append(f"worker {pid} ended by itself with code {code}")
            await asyncio.sleep(chance.uniform(0, 1))
            await member.start()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for pid, code in await asyncio.gather(*(member.end(how) for member in self._members)):
            if code not in (0, -signal.SIGTERM, -signal.SIGKILL):
                self.complaints.append(f"worker {pid} ended with code {code}")
