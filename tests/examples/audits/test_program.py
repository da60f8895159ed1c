"""`make example-audits`, as a reader starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


async def start(dsn: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.audits",
        cwd=ROOT,
        env=os.environ | {"HYBRID_RUNNER_DSN": dsn},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_program_shows_each_row_as_it_changes_and_ends_with_ctrl_c(
    fresh_dsn: str,
) -> None:
    program = await start(fresh_dsn)
    said = []
    try:
        assert program.stdout is not None
        ended: set[tuple[str, ...]] = set()
        while len(ended) < 3:
            line = (await program.stdout.readline()).decode()
            assert line, (await program.communicate())[1].decode()
            said.append(line.split())
            if said[-1][1] in ("completed", "failed"):
                ended.add(tuple(said[-1][:2]))
        assert ended == {
            ("https://shop.example", "completed"),
            ("https://museum.example", "completed"),
            ("https://nowhere.example", "failed"),
        }
        program.send_signal(signal.SIGINT)
        _, errors = await program.communicate()
        assert program.returncode == 0
        assert "Traceback" not in errors.decode()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_the_program_says_in_one_line_why_it_cannot_start() -> None:
    program = await start("postgresql://nobody@127.0.0.1:1/none")
    _, errors = await program.communicate()
    assert program.returncode == 1
    assert errors.decode().splitlines()[-1].startswith("audits: Postgres does not answer: ")
