"""Rows of an attached table that are large, or cannot be printed, fail alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'hybrid_runner%'"
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
MOST = 500_000
"""Kilobytes."""


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


async def test_rows_too_large_at_their_insert_fail_without_being_read(
    dsn: str, database: Connection
) -> None:
    """Each is 1.2 MB of JSON and a hundred bytes of storage; who inserts it pays for that."""
    await attach_audits(database)
    await database.execute(EVIL, 9, 20)
    sizes = "SELECT min(payload::text::int) FROM hybrid_runner.jobs"
    assert await database.fetchval(sizes) > 1024 * 1024
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, STATUSES.format("evil"), "failed")
    assert await errors(database) == ["PayloadRefused"]
    assert "attach the table again with --payload" in await database.fetchval(
        "SELECT error FROM public.audits WHERE website_url = 'evil' LIMIT 1"
    )


async def test_rows_that_grow_while_they_wait_are_never_in_memory_together(
    dsn: str, database: Connection
) -> None:
    """20 MB each: one array of them would be 800 MB, and that several times."""
    await attach_audits(database)
    await database.execute(EVIL, 1, 40)
    await database.execute(
        "UPDATE public.audits SET raw_data ="
        " (SELECT jsonb_agg(1e131071) FROM generate_series(1, 150))"
    )
    await database.execute(GOOD)
    async with working(auditing(dsn)):
        await until_fetched(database, STATUSES.format("good"), "completed")
        await until_fetched(database, STATUSES.format("evil"), "failed")
        sessions = [row[0] for row in await database.fetch(SESSIONS)]
        assert max(map(peak, sessions)) < MOST
    assert await errors(database) == ["PayloadRefused"]


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
