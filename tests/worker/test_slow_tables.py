"""An attached table whose own triggers take very long: its rows are late, and no job waits."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING
from hybrid_runner.upkeep.sources.late_rows import WriteLateRows
from hybrid_runner.worker import connections
from tests.support.attached import attach_audits
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

SLEEPS = """
CREATE TABLE public.gate (is_open boolean);
CREATE FUNCTION public.sleep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.gate) THEN PERFORM pg_catalog.pg_sleep(60); END IF;
    RETURN new;
END $$;
CREATE TRIGGER sleep BEFORE UPDATE ON public.audits FOR EACH ROW
WHEN (new.status IN ('completed', 'pending')) EXECUTE FUNCTION public.sleep()
"""
ENDED = "SELECT count(*) FROM hybrid_runner.archive WHERE kind = $1 AND state = 'completed'"
SHOWN = "SELECT count(*) FROM public.audits WHERE status = 'completed'"
LATE = "SELECT count(*) FROM hybrid_runner.late_rows"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = {"statement_timeout": "500ms"}
    monkeypatch.setattr(connections, "FOR_SETTLING_ROWS", FOR_SETTLING | soon)
    monkeypatch.setattr(WriteLateRows, "session", {**WriteLateRows.session, **soon})


async def test_a_table_that_sleeps_holds_up_no_end_and_is_written_when_it_is_awake(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Section 2: no batch of outcomes hangs on rows of an application."""
    caplog.set_level(logging.INFO)
    await attach_audits(database)
    await database.execute(SLEEPS)
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> int:
        return 7

    @app.job("other")
    async def other(_: dict[str, Any]) -> None: ...

    async with working(app):
        await database.execute(
            "INSERT INTO public.audits (website_url) SELECT 'a.example' FROM generate_series(1, 30)"
        )
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind) SELECT 'other' FROM generate_series(1, 30)"
        )
        await until_fetched(database, ENDED, 30, "other")
        await until_fetched(database, ENDED, 30, "audit")
        assert await database.fetchval(SHOWN) == 0
        assert await database.fetchval(LATE) == 30
        await database.execute("INSERT INTO public.gate VALUES (true)")
        await until_fetched(database, SHOWN, 30)
        await until_fetched(database, LATE, 0)
    results = await database.fetch("SELECT DISTINCT raw_data, retry_count FROM public.audits")
    assert [tuple(row) for row in results] == [("7", 0)]
    assert "rows.put_off" in [record.__dict__.get("event") for record in caplog.records]
