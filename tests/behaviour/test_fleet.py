import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg
import psycopg

from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until_fetched

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("square", "square_in_thread", "square_in_process")
EACH = 250


@contextmanager
def fleet(dsn: str, size: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes, ended by SIGTERM; each must end with 0."""
    environment = os.environ | {"HYBRID_RUNNER_DSN": dsn, "HYBRID_RUNNER_PROCESS_SLOTS": "1"}
    command = [
        sys.executable,
        "-m",
        "hybrid_runner",
        "worker",
        "tests.behaviour.fleet_app:app",
        "--queue",
        "default=10",
    ]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, env=environment))
            for _ in range(size)
        ]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            codes = [worker.wait(120) for worker in workers]
    assert codes == [0] * size


def insert_by_psql(dsn: str) -> None:
    numbers = f"SELECT 'square', jsonb_build_object('n', n) FROM generate_series(1, {EACH}) AS n"
    sql = f"INSERT INTO hybrid_runner.jobs (kind, payload) {numbers}"
    subprocess.run(
        [*shlex.split(psql_command()), dsn, "-q", "-v", "ON_ERROR_STOP=1", "-c", sql], check=True
    )


async def insert_by_asyncpg(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    for n in range(1, EACH + 1):
        await connection.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ($1, jsonb_build_object('n',"
            " $2::int))",
            KINDS[n % 3],
            n,
        )
    await connection.close()


def insert_by_psycopg(dsn: str) -> None:
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES (%s, jsonb_build_object('n',"
            " %s::int))",
            [(KINDS[n % 3], n) for n in range(1, EACH + 1)],
        )


async def insert_by_function(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    for n in range(1, EACH + 1):
        await connection.fetchval(
            "SELECT hybrid_runner.enqueue($1, jsonb_build_object('n', $2::int), key => $3)",
            KINDS[n % 3],
            n,
            f"n:{n}",
        )
    await connection.close()


async def test_a_thousand_jobs_from_four_clients_end_once_each_in_the_archive(
    dsn: str, database: Connection
) -> None:
    """A4 A6 D2 D7 F5: three worker processes, three executors, no job twice."""
    await database.execute("CREATE TABLE public.runs (job_id bigint, pid int, kind text)")
    with fleet(dsn, 3):
        await asyncio.gather(
            asyncio.to_thread(insert_by_psql, dsn),
            insert_by_asyncpg(dsn),
            asyncio.to_thread(insert_by_psycopg, dsn),
            insert_by_function(dsn),
        )
        await until_fetched(
            database, "SELECT count(*) FROM hybrid_runner.archive", 4 * EACH, patience=150
        )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0
    wrong = await database.fetch(
        "SELECT id, state, errors FROM hybrid_runner.archive WHERE state <> 'completed' OR attempt"
        " <> 1 OR (result)::int <> ((payload ->> 'n')::int) ^ 2"
    )
    assert not wrong
    assert await database.fetchval("SELECT count(*) FROM public.runs") == 4 * EACH
    assert await database.fetchval("SELECT count(DISTINCT job_id) FROM public.runs") == 4 * EACH
    assert (
        await database.fetchval("SELECT count(DISTINCT worker_id) FROM hybrid_runner.archive") == 3
    )
    assert {row[0] for row in await database.fetch("SELECT DISTINCT kind FROM public.runs")} == set(
        KINDS
    )
