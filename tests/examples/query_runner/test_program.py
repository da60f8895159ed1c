"""`make example-query-runner`, as a reader starts it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import aiohttp

from tests.support.ports import free_port
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]


async def test_the_program_starts_and_cancels_a_query_and_ends_with_ctrl_c(dsn: str) -> None:
    port = free_port()
    free_port()  # the next one is the warehouse's
    given = {"HYBRID_RUNNER_DSN": dsn, "QUERY_RUNNER_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.query_runner",
        cwd=ROOT,
        env=os.environ | given,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        said = (await program.stdout.readline()).decode()
        assert said == f"http://127.0.0.1:{port}  (Ctrl-C ends it)\n"
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/") as page:
                assert "<title>Query runner</title>" in await page.text()
            async with session.get("/runs") as answer:
                scripts = (await answer.json())["scripts"]
            async with session.post("/runs", json={"sql": "-- plays: never ends"}) as answer:
                assert answer.status == 201
                path = answer.headers["Location"]

            async def row() -> dict[str, object]:
                async with session.get(path) as answer:
                    shown: dict[str, object] = await answer.json()
                    return shown

            await until(row, lambda shown: shown["status"] == "running")
            async with session.post(f"{path}/cancel", json={}) as answer:
                assert answer.status == 200
            ended = await until(row, lambda shown: shown["cleaned_at"])
            assert (ended["status"], "plain" in scripts) == ("canceled", True)
        program.send_signal(signal.SIGINT)
        assert await program.wait() == 0
        assert program.stderr is not None
        assert "Traceback" not in (await program.stderr.read()).decode()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_the_program_says_in_one_line_why_it_cannot_start(dsn: str) -> None:
    """A taken port, one that is none, a server that is not there."""

    async def said(**given: str) -> str:
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "examples.query_runner",
            cwd=ROOT,
            env=os.environ | {"HYBRID_RUNNER_DSN": dsn} | given,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await program.communicate()
        assert (program.returncode, b"Traceback" in errors) == (1, False)
        return errors.decode().splitlines()[-1]

    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        line = await said(QUERY_RUNNER_PORT=str(port))
    assert "address already in use: take another port by QUERY_RUNNER_PORT=" in line
    line = await said(QUERY_RUNNER_PORT="x")
    assert line == "query runner: QUERY_RUNNER_PORT must be a port, such as 8700, not 'x'"
    line = await said(HYBRID_RUNNER_DSN="postgresql://nobody@127.0.0.1:1/none")
    assert line.startswith("query runner: Postgres does not answer: ")


def test_make_has_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = r"^example-query-runner:.*\n\t@.* -m examples\.query_runner$"
    assert re.search(target, makefile, re.MULTILINE)
