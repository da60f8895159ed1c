"""`make example-monitors`, as a reader starts it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


async def start(dsn: str, seconds: float) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.status_monitor",
        cwd=ROOT,
        env=os.environ | {"HYBRID_RUNNER_DSN": dsn, "STATUS_MONITOR_SECONDS": str(seconds)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_without_a_terminal_it_tells_the_news_and_ends_by_itself_with_a_summary(
    empty_dsn: str,
) -> None:
    program = await start(empty_dsn, 20)
    try:
        out, errors = (said.decode() for said in await program.communicate())
        assert program.returncode == 0, errors
        assert "Traceback" not in errors
        for part in (
            "40 services",
            "orders: is polled from now on",
            "ledger: is down: no answer",
            "the shop: newsletter moves",
            "most at a time for one address      1",
            "breakers that opened",
        ):
            assert part in out, out
        assert "\x1b" not in out
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_it_says_in_one_line_why_it_cannot_start() -> None:
    program = await start("postgresql://nobody@127.0.0.1:1/none", 1)
    _, errors = await program.communicate()
    assert program.returncode == 1
    assert errors.decode().splitlines()[-1].startswith("status monitor: Postgres does not answer: ")
