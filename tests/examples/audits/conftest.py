"""The example for one test: a table that somebody else than a superuser owns, the form by a login
without rights, and workers by theirs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from examples.audits.app import QUEUE, app, attach
from examples.audits.form import TABLE, Form
from examples.audits.site import sites
from hybrid_runner import Worker
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.examples.supabase import Supabase, psql
from tests.support.waiting import until

GRANTS = """
GRANT USAGE ON SCHEMA site_analysis TO jobs_worker;
GRANT SELECT (id), UPDATE (report_pdf_url) ON site_analysis.audits TO jobs_worker;
CREATE POLICY reports ON site_analysis.audits TO jobs_worker USING (true);
"""
"""What the handler needs to write the report's address; workers need nothing."""


class System:
    """What the site has, and what a test may look into."""

    def __init__(self, supabase: Supabase, form: Form, watch: Connection) -> None:
        self.supabase = supabase
        self.form = form
        self.watch = watch

    async def row(self, audit: UUID) -> dict[str, Any]:
        """What its table says."""
        found = await self.watch.fetchrow("SELECT * FROM site_analysis.audits WHERE id = $1", audit)
        assert found is not None
        return dict(found) | {
            name: json.loads(found[name] or "null") for name in ("raw_data", "errors")
        }

    async def until(
        self, audit: UUID, status: str, retry_count: int | None = None
    ) -> dict[str, Any]:
        return await until(
            lambda: self.row(audit),
            lambda row: row["status"] == status and retry_count in (None, row["retry_count"]),
            what=f"{status} {retry_count}",
        )

    @asynccontextmanager
    async def working(self, *names: str, slots: int = 2) -> AsyncIterator[list[Worker]]:
        """Workers of these names."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app)
            yield [
                await stack.enter_async_context(app.worker({QUEUE: slots}, worker_id=name))
                for name in names or ("one",)
            ]


async def attach_as(dsn: str) -> None:
    """As that login, then back."""
    before = app.settings.database.dsn
    app.use(dsn=dsn)
    async with app:
        await attach()
    app.use(dsn=before)


@pytest.fixture
async def table(supabase: Supabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    """Not attached yet."""
    monkeypatch.setattr(sites, "look", 0.005)
    psql(supabase.owner, TABLE)
    psql(supabase.owner, GRANTS)
    app.use(dsn=supabase.worker, grace="10ms")
    form = await Form.open(supabase.application)
    watch = await connect(supabase.superuser)
    yield System(supabase, form, watch)
    await watch.close()
    await form.close()


@pytest.fixture
async def system(table: System) -> System:
    """Attached; no worker runs yet."""
    await attach_as(table.supabase.owner)
    return table
