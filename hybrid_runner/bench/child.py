"""A program in a process of its own. It is sent commands as lines, and answers some of them with a
line of JSON.
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
_END_PATIENCE = 15.0
PATIENCE = 300.0
"""Seconds that a program may take to answer."""


class BenchError(RunnerError):
    """A measurement could not be made; the message says which and why."""


class Child:
    """A running program; its first line says that it is ready."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, stderr: IO[str]) -> None:
        self.name = name
        self.pid = process.pid
        self.first: dict[str, Any] = {}
        """The line with which it said that it is ready."""
        self._process = process
        self._stderr = stderr

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
        """Wait for the next line that the program writes."""
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        try:
            async with asyncio.timeout(patience):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise BenchError(
                f"{self.name} did not answer within {patience:.0f} s (asked: {asked})"
            ) from None
        if not line:
            raise BenchError(f"{self.name} has ended (asked: {asked}): {self._last_error()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def _last_error(self) -> str:
        """The last line that the program wrote to stderr."""
        self._stderr.seek(0)
        return next(
            (line.strip() for line in reversed(self._stderr.readlines()) if line.strip()),
            "without an error message",
        )

    async def end(self) -> None:
        """Close its input, which ends it; kill it if that does not."""
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_PATIENCE):
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
    says_ready: bool = True,
) -> AsyncIterator[Child]:
    """Run a program until the block ends. It finds the database in HYBRID_RUNNER_DSN; other
    settings of the runner are taken out of its environment.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HYBRID_RUNNER_", "OTEL_")) and key != "WORKER_ID"
    }
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=_LONGEST_LINE,
            env={
                **kept,
                **variables,
                "HYBRID_RUNNER_DSN": dsn,  # as an argument a password would show in `ps`
            },
            start_new_session=True,  # Ctrl-C is for the parent
        )
        child = Child(name, process, stderr)
        try:
            if says_ready:
                child.first = await child.answer()
            yield child
        finally:
            await child.end()


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package."""
    return [sys.executable, "-m", f"hybrid_runner.bench.{name}", *arguments]
