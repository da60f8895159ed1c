"""Whoever reaches the port takes as many connections as there are, and says nothing on them: the
worker keeps its database, its log stays small, and others are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import COMMAND, environment
from tests.support.faults import end_sessions
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.waiting import until_fetched

CROWD = 1100
STALLED = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
TASKS = """
from hybrid_runner import Runner

app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
os.execv(sys.argv[3], sys.argv[3:])
"""


@asynccontextmanager
async def limited_worker(
    folder: Path, dsn: str, port: int, files: int, most: int | None = None
) -> AsyncIterator[tuple[int, Path]]:
    """A worker that may have so many open files, and `most` if it asks; its pid and its log."""
    (folder / "tasks.py").write_text(TASKS)
    log = folder / "worker.log"
    command = (*COMMAND, "worker", "tasks:app", "--dsn", dsn, "--json")
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            LIMITED,
            str(files),
            str(most or files),
            *command,
            cwd=folder,
            env=environment(HYBRID_RUNNER_HTTP_PORT=str(port)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process.pid, log
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(120):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@pytest.fixture
def crowd() -> Iterator[list[socket.socket]]:
    """Connections that are closed at the end; room for many of them in this process."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, min(hard, 2 * CROWD)), hard))
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def stall(port: int, crowd: list[socket.socket], number: int) -> None:
    """Open so many connections and send half a request on each."""
    for _ in range(number):
        each = socket.socket()
        each.settimeout(0.5)
        crowd.append(each)
        with contextlib.suppress(OSError):
            each.connect(("127.0.0.1", port))
            each.sendall(STALLED)


@pytest.mark.parametrize("files", [256, 1024])
async def test_stalled_connections_leave_descriptors_for_the_database(
    dsn: str, database: Connection, tmp_path: Path, crowd: list[socket.socket], files: int
) -> None:
    port = free_port()
    async with limited_worker(tmp_path, dsn, port, files) as (_, log), browser(port) as client:
        await client.until("/ready", 200)
        await asyncio.to_thread(stall, port, crowd, CROWD)
        assert await end_sessions(database) > 0
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('note', '{}') RETURNING id"
        )
        await until_fetched(
            database, "SELECT count(*) FROM hybrid_runner.archive WHERE id = $1", 1, job
        )
        await client.until("/health", 200)
    assert log.stat().st_size < 100_000, log.read_text()[:2000]


async def test_a_worker_asks_for_more_files_than_a_shell_gives_it(dsn: str, tmp_path: Path) -> None:
    port = free_port()
    async with (
        limited_worker(tmp_path, dsn, port, 256, 1024) as (pid, _),
        browser(port) as client,
    ):
        await client.until("/ready", 200)
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (1024, 1024)
