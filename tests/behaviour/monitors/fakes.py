"""The fake services in a process of their own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from examples.status_monitor.fake.journal import Journal, read
from examples.status_monitor.fake.server import FakeService

ROOT = Path(__file__).resolve().parents[3]


class Fakes:
    def __init__(self, process: asyncio.subprocess.Process, journal: Path) -> None:
        self.port = 0
        self._process = process
        self._journal = journal

    async def start(self, services: Iterable[FakeService]) -> None:
        said = [[one.name, one.plays, one.host, one.number] for one in services]
        self.port = int(await self._ask(json.dumps(said)))

    async def journal(self) -> Journal:
        """All visits that have ended so far."""
        await self._ask("write")
        return await asyncio.to_thread(read, self._journal)

    async def _ask(self, line: str) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        return await self._process.stdout.readline()


@asynccontextmanager
async def fake_services(services: Iterable[FakeService], folder: Path) -> AsyncIterator[Fakes]:
    journal = folder / "visits"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.status_monitor.fake",
        str(journal),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        fakes = Fakes(process, journal)
        await fakes.start(services)
        yield fakes
    finally:
        process.kill()
        await process.communicate()
