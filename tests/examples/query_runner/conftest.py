"""The whole example for one test: the fake warehouse, the table of runs, the jobs, the page."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from examples.query_runner.fake.server import FakeWarehouse
from hybrid_runner import Worker
from tests.examples.query_runner.loading import load
from tests.support.waiting import until


class System:
    """What a person has who uses the page, and what a test may look into."""

    def __init__(self, jobs: Any, fake: FakeWarehouse, session: aiohttp.ClientSession) -> None:
        self.jobs = jobs
        self.fake = fake
        self.session = session

    async def start(self, script: str) -> str:
        """Start a run on the page; its id."""
        sql = f"-- plays: {script}\nSELECT 1"
        async with self.session.post("/runs", json={"sql": sql}) as answer:
            assert answer.status == 201, await answer.text()
            return str((await answer.json())["id"])

    async def run(self, run: str) -> dict[str, Any]:
        """Its row, as the page shows it."""
        async with self.session.get(f"/runs/{run}") as answer:
            assert answer.status == 200
            shown: dict[str, Any] = await answer.json()
            return shown

    async def cancel(self, run: str) -> tuple[int, str]:
        async with self.session.post(f"/runs/{run}/cancel", json={}) as answer:
            return answer.status, await answer.text()

    async def over(self, run: str, patience: float = 120) -> dict[str, Any]:
        """Its row, once it has ended and was cleaned up."""
        return await until(
            lambda: self.run(run), lambda row: row["cleaned_at"], patience=patience, what=run
        )

    @asynccontextmanager
    async def events(self, run: str) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        """What the page's stream says of it: names and data."""
        async with self.session.get(f"/runs/{run}/events") as answer:
            assert answer.content_type == "text/event-stream"
            yield _events(answer)

    @asynccontextmanager
    async def working(self, slots: int = 2, **options: Any) -> AsyncIterator[Worker]:
        async with self.jobs.app.worker({self.jobs.QUEUE: slots}, **options) as worker:
            yield worker


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in answer.content:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


MakeSystem = Callable[..., Any]


@pytest.fixture
async def make_system(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Any]]:
    """Makes a whole one, times so many times shorter; no worker runs yet."""
    async with AsyncExitStack() as stack:

        async def make(faster: float = 20) -> System:
            patience = max(10 / faster, 5.0)  # a busy machine is no warehouse that is slow
            fake = await stack.enter_async_context(FakeWarehouse(faster, late=patience * 1.5))
            jobs = load(dsn, fake.url, faster=faster, patience=patience)
            await stack.enter_async_context(jobs.app)
            stack.push_async_callback(jobs.runs.close)
            await jobs.runs.create_table()
            pages = web.AppRunner(_page(jobs, monkeypatch), access_log=None, shutdown_timeout=0.1)
            await pages.setup()
            stack.push_async_callback(pages.cleanup)
            site = web.TCPSite(pages, "127.0.0.1", 0)
            await site.start()
            session = aiohttp.ClientSession(f"http://127.0.0.1:{pages.addresses[0][1]}")
            await stack.enter_async_context(session)
            return System(jobs, fake, session)

        yield make


def _page(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> web.Application:
    """The page, of these jobs."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "examples.query_runner.app", jobs)
        patch.delitem(sys.modules, "examples.query_runner.page", raising=False)
        page: Any = importlib.import_module("examples.query_runner.page")
        made: web.Application = page.make_page()
        return made
