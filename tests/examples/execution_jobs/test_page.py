"""The application's page, and `make example-execution-jobs` as a reader starts it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from examples.execution_jobs.application import TABLES, Application
from examples.execution_jobs.page import make_page
from tests.examples.supabase import Supabase, psql
from tests.support.ports import free_port
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
START = {"name": "x", "steps": ["look", "type ${name}"], "csv": "name\nada\ngrace\n"}


@pytest.fixture
async def session(supabase: Supabase) -> AsyncIterator[aiohttp.ClientSession]:
    """Asks the page; no worker runs, and nothing is attached."""
    psql(supabase.owner, TABLES)
    application = Application(lambda: supabase.application)
    pages = web.AppRunner(make_page(application), access_log=None, shutdown_timeout=0.1)
    await pages.setup()
    await web.TCPSite(pages, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{pages.addresses[0][1]}") as session:
        yield session
    await pages.cleanup()
    await application.close()


async def test_the_page_starts_cancels_starts_again_and_deletes(
    session: aiohttp.ClientSession,
) -> None:
    async with session.post("/executions", json=START) as answer:
        assert answer.status == 201
        path = f"/executions/{(await answer.json())['id']}"
    for action, status in (("cancel", 200), ("cancel", 409), ("again", 200), ("again", 409)):
        async with session.post(f"{path}/{action}", json={}) as answer:
            assert answer.status == status, action
    async with session.get("/executions") as answer:
        [shown] = await answer.json()
    assert (shown["status"], shown["total_rows"], shown["name"]) == ("queued", 2, "x")
    async with session.delete(f"/recordings/{shown['recording_id']}") as answer:
        assert answer.status == 200
    async with session.get("/executions") as answer:
        assert await answer.json() == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({**START, "name": ""}, "name: "),
        ({**START, "steps": []}, "steps: "),
        ({**START, "steps": ["\x00"]}, "steps: "),
        ({**START, "csv": "a\x00"}, "csv: "),
        ([], ": "),
    ],
)
async def test_the_page_says_in_one_line_what_it_cannot_take(
    session: aiohttp.ClientSession, sent: object, said: str
) -> None:
    async with session.post("/executions", json=sent) as answer:
        assert answer.status == 422
        text = await answer.text()
    assert text.startswith(said)
    assert "\n" not in text


async def test_no_form_of_another_site_can_start_or_cancel(session: aiohttp.ClientSession) -> None:
    for path in ("/executions", "/executions/1/cancel", "/executions/1/again"):
        async with session.post(path, data={"name": "x"}) as answer:
            assert answer.status == 415
    async with session.post("/executions/1/cancel", json={}) as answer:
        assert answer.status == 404


async def test_the_program_completes_an_execution_and_ends_with_ctrl_c(fresh_dsn: str) -> None:
    port = free_port()
    given = {
        "HYBRID_RUNNER_DSN": fresh_dsn,
        "EXECUTION_JOBS_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
    }
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.execution_jobs",
        cwd=ROOT,
        env=os.environ | given,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        assert program.stderr is not None
        said = (await program.stdout.readline()).decode()
        assert said == f"http://127.0.0.1:{port}  (Ctrl-C ends it)\n", await program.stderr.read()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/") as page:
                assert "<title>Browser tests</title>" in await page.text()
            async with session.post("/executions", json=START) as answer:
                assert answer.status == 201

            async def first() -> dict[str, Any]:
                async with session.get("/executions") as answer:
                    found: list[dict[str, Any]] = await answer.json()
                    return found[0]

            ended = await until(first, lambda row: row["status"] == "completed")
            assert ended["completed_rows"] == 2
        program.send_signal(signal.SIGINT)
        assert await program.wait() == 0
        assert "Traceback" not in (await program.stderr.read()).decode()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_the_program_says_in_one_line_why_it_cannot_start(fresh_dsn: str) -> None:
    """A taken port, one that is none, a server that is not there."""

    async def said(**given: str) -> str:
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "examples.execution_jobs",
            cwd=ROOT,
            env=os.environ | {"HYBRID_RUNNER_DSN": fresh_dsn} | given,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await program.communicate()
        assert (program.returncode, b"Traceback" in errors) == (1, False), errors.decode()
        return errors.decode().splitlines()[-1]

    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        line = await said(EXECUTION_JOBS_PORT=str(port))
    assert "address already in use: take another port by EXECUTION_JOBS_PORT=" in line
    line = await said(EXECUTION_JOBS_PORT="x")
    assert line == "browser tests: EXECUTION_JOBS_PORT must be a port, such as 8710, not 'x'"
    line = await said(HYBRID_RUNNER_DSN="postgresql://nobody@127.0.0.1:1/none")
    assert line.startswith("browser tests: Postgres does not answer: ")


def test_make_has_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("execution-jobs", "audits"):
        target = rf"^example-{name}:.*\n\t@.* -m examples\.{name.replace('-', '_')}$"
        assert re.search(target, makefile, re.MULTILINE)
