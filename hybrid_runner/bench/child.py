"""A program in a process of its own: it is sent lines, and answers some of them with a line of
JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

from hybrid_runner.errors import RunnerError

_LONGEST_LINE = 2**27
_FAREWELL = 15.0
PATIENCE = 300.0
"""Seconds that a program may take to answer."""


class BenchError(RunnerError):
    """A measurement could not be made; the message says which and why."""


class Child:
    """A running program; the first thing that it says is that it is ready."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, complaints: IO[str]) -> None:
        self.name = name
        self.pid = process.pid
        self.first: dict[str, Any] = {}
        """What it said when it was ready."""
        self._process = process
        self._complaints = complaints

    def tell(self, line: str) -> None:
        """Send a line that has no answer."""
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        self._process.stdin.write(f"{line}\n".encode())

    async def ask(self, line: str, patience: float = PATIENCE) -> dict[str, Any]:
        """Send a line and wait for its answer."""
        self.tell(line)
        return await self.answer(patience, line)

    async def answer(
        self, patience: float = PATIENCE, asked: str = "to be ready"
    ) -> dict[str, Any]:
        """The next thing that it says."""
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        try:
            async with asyncio.timeout(patience):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise BenchError(
                f"{self.name} did not answer within {patience:.0f} s (asked: {asked})"
            ) from None
        if not line:
            raise BenchError(f"{self.name} has ended (asked: {asked}): {self._last_words()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def _last_words(self) -> str:
        """Of what it wrote to stderr."""
        self._complaints.seek(0)
        return next(
            (line.strip() for line in reversed(self._complaints.readlines()) if line.strip()),
            "without a word",
        )

    async def end(self) -> None:
        """Close its input, which ends it; kill it if that does not."""
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def started(
    name: str,
    command: Sequence[str],
    dsn: str,
    variables: Mapping[str, str] = {},
    *,
    first_words: bool = True,
) -> AsyncIterator[Child]:
    """Run a program until the block ends; it finds the database in HYBRID_RUNNER_DSN, and no other
    setting of ours.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HYBRID_RUNNER_", "OTEL_")) and key != "WORKER_ID"
    }
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            limit=_LONGEST_LINE,
            env={
                **kept,
                **variables,
                "HYBRID_RUNNER_DSN": dsn,
            },  # not an argument: a password would show in the process list
            start_new_session=True,  # Ctrl-C is for us
        )
        child = Child(name, process, complaints)
        try:
            if first_words:
                child.first = await child.answer()
            yield child
        finally:
            await child.end()


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs one of our modules."""
    return [sys.executable, "-m", f"hybrid_runner.bench.{name}", *arguments]
