"""The tables of docs/schedules.md: what clocks' changes and outages make of ticks."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT

TEXT = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = "2026-03-29 01:01", "2026-10-25 01:31"
CLOCK = """
CREATE OR REPLACE FUNCTION hybrid_runner.tick_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT timestamptz '{}' $$
"""
JOBS = "SELECT tick FROM hybrid_runner.jobs ORDER BY tick"


def rows(first: str) -> list[list[str]]:
    """The rows of the table whose head begins so, as their cells."""
    table = TEXT.split(f"\n| {first}", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.split("\n")[2:]]


def test_there_are_rows() -> None:
    assert len(rows("expression ")) == 4
    assert len(rows("| jobs ")) == 4


@pytest.mark.parametrize("row", rows("expression ")[:3], ids=lambda row: row[0])
async def test_the_clocks_changes_do_what_the_table_says(
    database: Connection, row: list[str]
) -> None:
    expression, spring, autumn = row
    if "every" in expression:
        return
    for said, after in ((spring, SPRING), (autumn, AUTUMN)):
        wanted = re.findall(r"\d\d:\d\d", said.partition(", for")[0])
        local = datetime.fromisoformat(after).replace(tzinfo=BERLIN)
        found = await database.fetch(
            "SELECT * FROM hybrid_runner.next_ticks($1, 'Europe/Berlin', $2, $3)",
            expression.strip("`"),
            len(wanted),
            local,
        )
        ticks = [tick[0].astimezone(BERLIN) for tick in found]
        assert [f"{tick:%H:%M}" for tick in ticks] == wanted
        assert len({tick.date() for tick in ticks}) == 1
        real = [tick[0] for tick in found]
        assert all(b - a == timedelta(minutes=30) for a, b in itertools.pairwise(real))


@pytest.mark.parametrize("row", rows("| jobs "), ids=lambda row: row[0])
async def test_an_outage_of_three_hours_makes_the_jobs_that_the_table_says(
    dsn: str, database: Connection, row: list[str]
) -> None:
    policy, jobs, ticks = row
    words = re.findall(r'`(?:\w+=)?"?(\w+)"?`', policy)
    await database.execute(CLOCK.format("2030-05-07 12:30 UTC"))
    async with Runner(dsn) as app:
        await app.add_schedule(
            "s",
            "work",
            every="1h",
            overlap="allow",
            missed=words[0],
            catch_up=words[1] if len(words) > 1 else "1d",
        )
        await database.execute(CLOCK.format("2030-05-07 15:30 UTC"))
        await database.execute("SELECT * FROM hybrid_runner.fire_schedules()")
        [one] = await app.schedules()
    stored = [f"{each['tick'].astimezone(UTC):%H:%M}" for each in await database.fetch(JOBS)]
    assert len(stored) == int(jobs)
    assert stored == re.findall(r"\d\d:\d\d", ticks)
    assert one.next_at == datetime(2030, 5, 7, 16, tzinfo=UTC)
    assert one.dropped == (2 if "dropped" in ticks else 3 if words[0] == "none" else one.dropped)
