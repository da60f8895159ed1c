"""Workers in processes of their own, clients in this one, and in the end the laws."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hybrid_runner import Runner
from tests.behaviour.chaos.journal import FOLDER_VARIABLE
from tests.behaviour.operations.clients import QUEUES, Client, pause_now_and_then
from tests.behaviour.operations.laws import HOOKED, check
from tests.behaviour.operations.records import SCHEMA, Records
from tests.behaviour.rows import table
from tests.behaviour.rows.application import cancel_and_retry_until, work_on_rows
from tests.behaviour.rows.laws import check as check_rows
from tests.behaviour.rows.records import Records as RowRecords
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]
_HOOKED = "SELECT count(*) FROM hybrid_runner.kinds WHERE on_end IS NOT NULL"
_CLIENTS = 8
_WORKERS = 2
_DRAINED_WITHIN = 90.0


@dataclass(frozen=True)
class Result:
    """What was done, and what is wrong."""

    operations: int
    jobs: int
    violations: list[str]


async def mix(dsn: str, seconds: float, seed: int) -> Result:
    """Operations for so long, then the laws."""
    records, rows, app = Records(), RowRecords(), Runner(dsn, http_port=0)
    async with app, AsyncExitStack() as stack:
        database = await app.connect()
        stack.push_async_callback(database.close)
        await database.execute(SCHEMA)
        await table.make(database, with_login=False)
        await table.attach(app)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pausing = await app.connect()
        stack.push_async_callback(pausing.close)
        clients = []
        for number in range(_CLIENTS):
            opened = await app.connect()
            stack.push_async_callback(opened.close)
            await opened.execute("SET statement_timeout = '10s'")
            clients.append(Client(app, opened, records, random.Random(f"{seed} {number}")))
        with tempfile.NamedTemporaryFile("w+", errors="replace") as log, workers(dsn, log, folder):
            # Without a worker nobody knows which kinds are cleaned up after.
            await until(
                lambda: database.fetchval(_HOOKED), lambda count: count == len(HOOKED), patience=90
            )
            end = asyncio.get_running_loop().time() + seconds
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(client.work_until(end))
                group.create_task(work_on_rows(dsn, rows, seconds, seed))
                chance = random.Random(f"{seed} cancels")
                group.create_task(cancel_and_retry_until(database, rows, chance, end))
                chance = random.Random(f"{seed} pauses")
                group.create_task(pause_now_and_then(app, pausing, records, chance, end))

            async def left() -> int:
                count: int = await database.fetchval(table.QUIET)
                return count

            try:
                await until(left, lambda count: count == 0, patience=_DRAINED_WITHIN)
            except AssertionError:
                log.seek(0)
                print(log.read()[-5000:], file=sys.stderr)  # noqa: T201  # and the laws name the jobs
        await records.read(database)
        await rows.read(database.fetch, folder)
    operations = sum(client.operations for client in clients) + rows.operations
    violations = check(records) + check_rows(rows)
    return Result(operations, len(records.known) + len(rows.ended), violations)


@contextmanager
def workers(dsn: str, log: IO[str], folder: Path) -> Iterator[None]:
    """They stop in order; what they log goes to that file."""
    environment = os.environ | {
        "HYBRID_RUNNER_DSN": dsn,
        FOLDER_VARIABLE: str(folder),
        "HYBRID_RUNNER_HTTP_PORT": "0",
        "HYBRID_RUNNER_LOG_LEVEL": "error",
        "PYTHONPATH": str(ROOT),
    }
    queues = [
        argument for queue in (*QUEUES, table.QUEUE) for argument in ("--queue", f"{queue}=10")
    ]
    command = [
        sys.executable,
        "-m",
        "hybrid_runner",
        "worker",
        "tests.behaviour.operations.app:app",
    ]
    started = [
        subprocess.Popen([*command, *queues], cwd=ROOT, env=environment, stderr=log)
        for _ in range(_WORKERS)
    ]
    try:
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(120)
