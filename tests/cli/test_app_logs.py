"""Logging that the application has set up stays as it is, unless a format of ours was asked for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import COMMAND, environment, hybrid_runner

TASKS = """
import logging, sys, warnings
from hybrid_runner import Runner
{setup}
logging.getLogger("shop").warning("a line at import")
app = Runner(http_port=0)

@app.job("sell")
async def sell(payload: dict) -> None:
    logging.getLogger("shop").info("sold")

@app.job("break", max_attempts=1)
async def break_it(payload: dict) -> None:
    raise ValueError("out of stock")

@app.job("in_process", executor="process")
def in_process(payload: dict) -> None:
    logging.getLogger("shop").info("sold in a process")
"""
BASIC = 'logging.basicConfig(format="OURS %(levelname)s %(message)s", level="INFO")'
BY_DICT = """
import logging.config
logging.config.dictConfig({
    "version": 1, "formatters": {"f": {"format": "OURS %(levelname)s %(message)s"}},
    "handlers": {"h": {"class": "logging.StreamHandler", "formatter": "f"}},
    "root": {"handlers": ["h"], "level": "INFO"}, "disable_existing_loggers": False,
})
"""


@asynccontextmanager
async def working(
    folder: Path, setup: str, *arguments: str, **more: str
) -> AsyncIterator[asyncio.StreamReader]:
    """The stderr of a worker whose module sets up logging in this way."""
    (folder / "tasks.py").write_text(TASKS.replace("{setup}", setup))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "worker",
        "tasks:app",
        *arguments,
        cwd=folder,
        env=environment(**more),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        yield process.stderr
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(lines: asyncio.StreamReader, text: str) -> list[str]:
    """Read log lines up to the one that has the text."""
    said = []
    while line := (await lines.readline()).decode():
        said.append(line.rstrip("\n"))
        if text in line:
            return said
    raise AssertionError(f"it never said {text!r}: {said}")


@pytest.mark.parametrize("setup", [BASIC, BY_DICT], ids=["basicConfig", "dictConfig"])
async def test_an_application_that_sets_up_logging_keeps_it(
    setup: str, dsn: str, database: Connection, tmp_path: Path
) -> None:
    async with working(tmp_path, setup, "--dsn", dsn) as lines:
        said = await until(lines, "listening on")
        assert said[0] == "OURS WARNING a line at import"
        assert all(line.startswith("OURS ") for line in said)
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('sell')")
        await until(lines, "OURS INFO sold")
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('in_process')")
        await until(lines, "OURS INFO sold in a process")


async def test_a_failure_for_good_reaches_the_applications_logs_as_an_error_with_its_traceback(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    async with working(tmp_path, BASIC, "--dsn", dsn) as lines:
        await until(lines, "listening on")
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('break')")
        said = await until(lines, "ValueError: out of stock")
        assert (
            said[-1] == "OURS ERROR break failed for good, attempt 1 of 1: ValueError: out of stock"
        )
        assert (await until(lines, "ValueError: out of stock"))[
            0
        ] == "Traceback (most recent call last):"


async def test_a_format_that_was_asked_for_wins(dsn: str, tmp_path: Path) -> None:
    async with working(tmp_path, BASIC, "--dsn", dsn, "--log-format", "json") as lines:
        said = await until(lines, "listening on")
        assert said[0] == "OURS WARNING a line at import"  # before the worker knew
        assert all(line.startswith("{") for line in said[1:])


async def test_asked_to_it_leaves_logging_alone_even_if_nobody_has_set_it_up(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    async with working(tmp_path, "", "--dsn", dsn, HYBRID_RUNNER_LOG_FORMAT="app") as lines:
        await until(lines, "a line at import")
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('break')")
        said = await until(lines, "failed for good")
        assert said == [
            "break failed for good, attempt 1 of 1: ValueError: out of stock"
        ]  # as Python prints it
        await until(lines, "ValueError: out of stock")


async def test_without_any_logging_of_its_own_its_lines_are_ours_from_the_import_on(
    dsn: str, tmp_path: Path
) -> None:
    setup = 'warnings.warn("of Python")'
    async with working(tmp_path, setup, "--dsn", dsn, "--json") as lines:
        said = await until(lines, "listening on")
        assert all(line.startswith("{") for line in said)
        assert "of Python" in said[0]
        assert '"event":"worker.started"' in "".join(said)


STRAY = 'logging.warning("a library logs at the root while it is imported")'
WHOSE = (
    "hybrid-runner: logging is as the application set it up; --log-format console for"
    " hybrid-runner's own"
)


async def test_a_level_that_was_given_is_that_of_our_lines_in_the_applications_logs(
    dsn: str, tmp_path: Path
) -> None:
    async with working(tmp_path, STRAY, "--dsn", dsn, "--log-level", "info") as lines:
        said = await until(lines, "listening on")
        assert said[0].startswith("WARNING:root:")
        assert all(line.startswith("INFO:hybrid_runner.") for line in said[2:]), said


async def test_where_the_applications_logs_show_nothing_of_ours_one_line_says_so(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    async with working(tmp_path, STRAY, "--dsn", dsn) as lines:
        said = await until(lines, "hybrid-runner's own")
        assert said[2:] == [WHOSE]
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('break')")
        assert len(await until(lines, "failed for good")) == 1


async def test_no_password_is_in_our_lines_in_the_applications_logs(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    setup = f"""
{STRAY}
def leak():
    ours = logging.getLogger("hybrid_runner.worker")
    try:
        raise ValueError("cannot read {secret}")
    except ValueError:
        ours.error("no login with %s", "{secret}", exc_info=True)
import threading; threading.Timer(0.5, leak).start()
"""
    dsn = f"postgresql://nobody:{secret}@127.0.0.1:1/nothing"
    (tmp_path / "tasks.py").write_text(TASKS.replace("{setup}", setup))
    ended = hybrid_runner(
        "worker", "tasks:app", "--dsn", dsn, cwd=tmp_path, HYBRID_RUNNER_START_TIMEOUT="4"
    )
    assert "ERROR:hybrid_runner.worker:no login with ***" in ended.stderr
    assert "ValueError: cannot read ***" in ended.stderr
    assert secret not in ended.stderr
