"""Rows of an attached table that are large, or cannot be printed, fail alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import attach_audits
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

EVIL = (
    "INSERT INTO public.audits (website_url, raw_data) SELECT 'evil', numbers.n"
    " FROM (SELECT jsonb_agg(1e131071) AS n FROM generate_series(1, $1::int)) AS numbers"
    " CROSS JOIN generate_series(1, $2::int)"
)
GOOD = "INSERT INTO public.audits (website_url) SELECT 'good' FROM generate_series(1, 5)"
STATUSES = "SELECT string_agg(DISTINCT status, ' ') FROM public.audits WHERE website_url = '{}'"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'hybrid-runner%'"
ODD = """
CREATE TYPE public.odd AS ENUM ('odd');
CREATE FUNCTION public.printed(public.odd) RETURNS json LANGUAGE plpgsql AS
    'BEGIN RAISE division_by_zero; END';
CREATE CAST (public.odd AS json) WITH FUNCTION public.printed(public.odd);
ALTER TABLE public.audits ADD given public.odd;
ALTER TABLE public.audits DISABLE TRIGGER USER;
INSERT INTO public.audits (website_url, given) VALUES ('evil', 'odd');
ALTER TABLE public.audits ENABLE TRIGGER USER;
"""
MOST, MOST_OF_ONE = 500_000, 2_500_000
"""Kilobytes; the second while Postgres tries to print one row, which it gives up at 1 GiB."""


def auditing(dsn: str) -> Runner:
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> int:
        return 1

    return app


def peak(pid: int) -> int:
    """Kilobytes that a server process has had; 0 where it runs elsewhere."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return max((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), default=0)


async def errors(database: Connection) -> list[str]:
    rows = await database.fetch(
        "SELECT DISTINCT errors -> -1 ->> 'type' FROM hybrid_runner.archive"
    )
    return [row[0] for row in rows if row[0] is not None]


@pytest.mark.parametrize(
    ("numbers", "rows", "why"),
    [(9, 100, "PayloadRefused"), (150, 40, "PayloadRefused"), (9_000, 3, "PayloadUnreadable")],
    ids=["1.2 MB", "20 MB", "beyond what can be printed"],
)
async def test_rows_that_print_large_are_never_in_memory_together(
    dsn: str, database: Connection, numbers: int, rows: int, why: str
) -> None:
    """They take about a hundred bytes of storage each, and inserting them costs no more."""
    await attach_audits(database)
    await database.execute(EVIL, numbers, rows)
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, STATUSES.format("evil"), "failed")
        sessions = [row[0] for row in await database.fetch(SESSIONS)]
        assert max(map(peak, sessions)) < (MOST if numbers < 9_000 else MOST_OF_ONE)
    assert await errors(database) == [why]


async def test_row_that_cannot_be_printed_fails_alone(dsn: str, database: Connection) -> None:
    await attach_audits(database)
    await database.execute(ODD)
    await database.execute("SELECT hybrid_runner.want_rows(1, 10)")
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, STATUSES.format("evil"), "failed")
    assert await errors(database) == ["PayloadUnreadable"]
    assert "division_by_zero" in await database.fetchval(
        "SELECT error FROM public.audits WHERE website_url = 'evil'"
    )


BROKEN = """
CREATE OR REPLACE FUNCTION public.printed(public.odd) RETURNS json LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{}'; END $$
"""
MENDED = """
CREATE OR REPLACE FUNCTION public.printed(public.odd) RETURNS json LANGUAGE sql AS
    $$ SELECT '1'::json $$
"""
WAITING = (
    "SELECT count(*) FROM hybrid_runner.jobs"
    " WHERE errors -> -1 ->> 'type' = 'RowUnread' AND attempt = 0"
)


@pytest.mark.parametrize("state", ["57014", "40P01", "53200", "55P03"])
async def test_row_whose_read_may_work_later_waits_alone(
    dsn: str, database: Connection, state: str
) -> None:
    await attach_audits(database)
    await database.execute(ODD + BROKEN.format(state))
    await database.execute("SELECT hybrid_runner.want_rows(1, 10)")
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, WAITING, 1)
        await database.execute(MENDED)
        await until_fetched(database, STATUSES.format("evil"), "completed")


@pytest.mark.parametrize("state", ["57014", "P0001", "22P02"])
async def test_rows_that_a_fault_of_their_table_hits_all_wait(
    dsn: str, database: Connection, state: str
) -> None:
    await attach_audits(database)
    await database.execute(ODD + BROKEN.format(state))
    await database.execute("ALTER TABLE public.audits ALTER given SET DEFAULT 'odd'")
    await database.execute("SELECT hybrid_runner.want_rows(1, 10)")
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, WAITING, 6)
        await database.execute(MENDED)
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, STATUSES.format("evil"), "completed")
