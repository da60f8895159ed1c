"""The whole example for one test: tables that somebody else than a superuser owns, the application
by a login without rights, and workers by theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from examples.execution_jobs.app import QUEUE, app, attach
from examples.execution_jobs.application import TABLES, Application
from examples.execution_jobs.browser import browser
from hybrid_runner import Worker
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.examples.supabase import Supabase, psql
from tests.support.waiting import until

ADA = UUID(int=1)
STEPS = ("open the page", "type ${name}")


class System:
    """What a person has who uses the application, and what a test may look into."""

    def __init__(self, supabase: Supabase, application: Application, watch: Connection) -> None:
        self.supabase = supabase
        self.application = application
        self.watch = watch

    async def start(self, *names: str, steps: Sequence[str] = STEPS) -> UUID:
        """A recording, and one execution of it with these rows."""
        recording = await self.application.record(ADA, "Sign in", steps)
        return await self.application.start(ADA, recording, [{"name": name} for name in names])

    async def row(self, execution: UUID) -> dict[str, Any]:
        """What its table says; nothing if it was deleted."""
        found = await self.watch.fetchrow(
            "SELECT * FROM browser_tests.execution_jobs WHERE id = $1", execution
        )
        return {} if found is None else dict(found)

    async def until(self, execution: UUID, status: str) -> dict[str, Any]:
        return await until(
            lambda: self.row(execution), lambda row: row["status"] == status, what=status
        )

    async def jobs(self) -> list[dict[str, Any]]:
        rows = await self.watch.fetch(
            "SELECT id, state::text, attempt, row_key FROM hybrid_runner.all_jobs ORDER BY id"
        )
        return [dict(row) for row in rows]

    async def ended(self, *states: str) -> None:
        """Wait until the jobs have ended like that, in the order in which they were made."""
        await until(self.jobs, lambda jobs: [job["state"] for job in jobs] == list(states))

    @asynccontextmanager
    async def working(self, *names: str, slots: int = 2) -> AsyncIterator[list[Worker]]:
        """Workers of these names."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app)
            yield [
                await stack.enter_async_context(app.worker({QUEUE: slots}, worker_id=name))
                for name in names or ("one",)
            ]


@pytest.fixture
async def system(supabase: Supabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    """Attached; no worker runs yet."""
    monkeypatch.setattr(browser, "step", 0.005)
    psql(supabase.owner, TABLES)
    app.use(dsn=supabase.owner)
    async with app:
        await attach()
    app.use(dsn=supabase.worker, grace="10ms")
    application = Application(lambda: supabase.application)
    watch = await connect(supabase.superuser)
    yield System(supabase, application, watch)
    await watch.close()
    await application.close()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Each step takes for ever, until it is called."""
    monkeypatch.setattr(browser, "step", 60.0)
    return lambda: monkeypatch.setattr(browser, "step", 0.005)
