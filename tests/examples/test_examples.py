"""Each example runs as its reader would run it, on a database of its own; a worker then does what
it asked for.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_runner import Runner
from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.storage.connections.connection import Connection

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TESTED = {
    "thumbnail.py",
    "with_asyncpg.py",
    "with_psycopg.py",
    "with_sqlalchemy.py",
    "with_psql.sh",
}


def run(dsn: str, *command: str) -> list[str]:
    """Run an example; the lines that it prints."""
    environment = os.environ | {"HYBRID_RUNNER_DSN": dsn, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        env=environment,
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def receipts(dsn: str, count: int) -> list[int]:
    """The orders for which a worker wrote a receipt, once it has written so many."""
    app = Runner(dsn)
    written: list[int] = []

    @app.job("receipt")
    async def receipt(payload: dict[str, int]) -> None:
        written.append(payload["order"])

    async with app, app.worker() as worker:
        await worker.settled(count)
    return sorted(written)


async def orders(database: Connection) -> list[int]:
    """The orders that were placed."""
    await database.execute('SET search_path = "$user", public')  # as the example has it
    return [
        number for (number,) in await database.fetch("SELECT number FROM orders ORDER BY number")
    ]


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == TESTED


async def test_thumbnail_shows_a_job_from_its_handler_to_its_result(
    dsn: str, database: Connection
) -> None:
    [first, second] = await asyncio.to_thread(run, dsn, sys.executable, "thumbnail.py")
    assert first.startswith("job ")
    assert second == "{'bytes': 307200}"
    [job] = await database.fetch(
        "SELECT queue, priority, key, state, result, progress FROM hybrid_runner.archive"
    )
    assert tuple(job)[:4] == ("images", 3, "thumb:42", "completed")


async def test_asyncpg_enqueues_in_the_callers_transaction(dsn: str, database: Connection) -> None:
    said = await asyncio.to_thread(run, dsn, sys.executable, "with_asyncpg.py")
    assert said[-1] == "order 2 was rolled back, and its job with it"
    assert await orders(database) == [1]
    assert await receipts(dsn, 1) == [1]


async def test_psycopg_enqueues_in_the_callers_transaction(dsn: str, database: Connection) -> None:
    [first, second, third] = await asyncio.to_thread(run, dsn, sys.executable, "with_psycopg.py")
    assert second == "order 2 was rolled back, and its job with it"
    assert third == f"({first.removeprefix('order 1 has job ')}, 'exists')"
    assert await orders(database) == [1]
    assert await receipts(dsn, 1) == [1]


async def test_sqlalchemy_enqueues_in_the_callers_transaction(
    dsn: str, database: Connection
) -> None:
    said = await asyncio.to_thread(run, dsn, sys.executable, "with_sqlalchemy.py")
    assert said[-1] == "order 3 was rolled back, and its job with it"
    assert await orders(database) == [1, 2]
    assert await receipts(dsn, 2) == [1, 2]


async def test_psql_inserts_calls_and_rolls_back(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path(psql_command().strip('"')).parent
    monkeypatch.setenv("PATH", f"{beside}{os.pathsep}{os.environ['PATH']}")
    said = await asyncio.to_thread(run, dsn, "sh", "with_psql.sh")
    assert [line.isdecimal() for line in said] == [True] * 3
    assert await receipts(dsn, 10) == list(range(1, 11))


async def test_all_run_one_after_the_other_and_again_in_one_database(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path(psql_command().strip('"')).parent
    monkeypatch.setenv("PATH", f"{beside}{os.pathsep}{os.environ['PATH']}")
    for name in sorted(TESTED) + sorted(TESTED, reverse=True):
        await asyncio.to_thread(run, dsn, "sh" if name.endswith(".sh") else sys.executable, name)
    assert len(await orders(database)) == 8


@pytest.mark.parametrize("name", ["with_psycopg.py", "with_sqlalchemy.py", "with_psql.sh"])
def test_without_a_dsn_there_is_one_line_that_says_so(name: str) -> None:
    command = "sh" if name.endswith(".sh") else sys.executable
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [command, name],
        env=environment,
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "HYBRID_RUNNER_DSN" in done.stderr


@pytest.mark.parametrize("name", sorted(TESTED))
def test_the_first_lines_say_what_it_needs(name: str) -> None:
    assert "Needs: " in "".join((EXAMPLES / name).read_text().splitlines()[:4])
