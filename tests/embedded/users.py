"""A second user of an embedded Postgres, and questions about a folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg

import hybrid_runner
from hybrid_runner.embedded import EmbeddedPostgres, locks

PATIENCE = 60.0
USER = """
import pathlib, sys
from hybrid_runner.embedded import use_embedded
postgres = use_embedded(pathlib.Path(sys.argv[1]))
print(postgres.started, postgres.dsn, flush=True)
sys.stdin.read()
"""
Use = Callable[..., EmbeddedPostgres]


class OtherProcess:
    """A second process that uses the folder until its standard input ends."""

    def __init__(self, directory: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(hybrid_runner.__file__).parent.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def wait_until_served(self) -> tuple[bool, str]:
        """Whether it started the server, and its DSN."""
        assert self.process.stdout is not None
        started, dsn = self.process.stdout.readline().split()
        return started == "True", dsn

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def ask(dsn: str, statement: str) -> Any:
    async def session() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(session())


def wait_until_stopped(directory: Path) -> None:
    """Keeper gone and no process of Postgres left, by their locks."""
    for name in ("keeper", "server"):
        lock = locks.hold(directory / f"{name}.lock", deadline=time.monotonic() + PATIENCE)
        assert lock is not None, f"{name} still lives"
        locks.release(lock)


def postmaster(directory: Path) -> int:
    return int((directory / "data/postmaster.pid").read_text().split()[0])


def keeper(directory: Path) -> int:
    return int((directory / "keeper.lock").read_text())


def log(directory: Path) -> str:
    return (directory / "postgres.log").read_text()
