"""next_fire against cronsim, and against the rule itself where they differ."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from hybrid_runner.storage.connections.connection import Connection
from tests.schedules.oracle import ZONES, Rule, by_cronsim, random_expressions

SEED = int(os.environ.get("HYBRID_RUNNER_TEST_CRON_SEED", "16"))
COUNT = int(os.environ.get("HYBRID_RUNNER_TEST_CRON_EXPRESSIONS", "6000"))
YEARLY = ("7 * * * *", "*/20 0-3 * * *", "15,45 0-4 * * *", "30 2 * * 0", "0 0 L * *")
DAY = timedelta(days=1)
OFF_THE_HOUR = ("Australia/Lord_Howe", "Pacific/Chatham")
TICKS = "SELECT hybrid_runner.cron_ticks($1, $2, $3, NULL, $4)"


async def test_random_expressions_fire_as_cronsim_says_except_where_cronsim_breaks_the_rule(
    unchanged: Connection,
) -> None:
    ticks = await unchanged.prepare(TICKS)
    compared = 0
    faults: Counter[str] = Counter()
    for expression, zone, start in random_expressions(SEED, COUNT):
        wanted = by_cronsim(expression, zone, start, 4)
        if wanted is None:
            continue
        compared += 1
        found = await ticks.fetchval(expression, zone, start, 4)
        if found == wanted:
            continue
        case = f"{expression!r} in {zone} after {start}: {found}, and cronsim: {wanted}"
        rule = Rule(expression)
        end = max(*found, *wanted)
        assert end - start < timedelta(days=400), case
        assert found == rule.ticks(zone, start, end)[:4], case
        fault = fault_of_cronsim(rule, zone, start, wanted)
        assert fault, case
        faults[fault] += 1
    assert compared > COUNT * 0.95
    assert faults.total() <= max(3, COUNT // 200), faults


def fault_of_cronsim(rule: Rule, zone: str, start: datetime, wanted: list[datetime]) -> str:
    """What is wrong with these ticks; empty: nothing that is known."""
    here = ZoneInfo(zone)
    if wanted[0] <= start:
        return "a fixed time comes twice, and it names the first one although that is over"
    if rule.is_real_time and not all(
        rule.names(tick.astimezone(here).replace(tzinfo=None)) for tick in wanted
    ):
        return "a day begins at one, and it names its midnight"
    near = any(
        (tick - DAY).astimezone(here).utcoffset() != (tick + DAY).astimezone(here).utcoffset()
        for tick in (start, *wanted)
    )
    if rule.is_real_time and zone in OFF_THE_HOUR and near:
        return "the clock changes by half an hour, or at a quarter to, and it steps by whole ones"
    return ""


@pytest.mark.parametrize("zone", ZONES)
async def test_a_year_fires_as_cronsim_says_and_near_changes_of_the_clock_as_the_rule_says(
    unchanged: Connection, zone: str
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = start + timedelta(days=365)
    near = [(day - timedelta(days=1), day + timedelta(days=2)) for day in changes(zone, start, end)]
    for expression in YEARLY:
        found = await unchanged.fetchval(
            "SELECT hybrid_runner.cron_ticks($1, $2, $3, $4, 100000)", expression, zone, start, end
        )
        year = CronSim(expression, start.astimezone(ZoneInfo(zone)))
        wanted = {tick.astimezone(UTC) for tick in takewhile(lambda tick: tick <= end, year)}
        for opens, closes in near:
            wanted -= {tick for tick in wanted if opens < tick <= closes}
            wanted |= {*Rule(expression).ticks(zone, opens, closes)}
        assert found == sorted(wanted), expression


async def test_skipped_fixed_time_fires_from_each_start_before_the_jump(
    unchanged: Connection,
) -> None:
    """The last minute before the clock jumps may be a tick itself."""
    ticks = await unchanged.prepare(TICKS)
    asked = 0
    lost = []
    for zone, jump in jumps():
        before = (jump - timedelta(minutes=1)).astimezone(ZoneInfo(zone)).hour
        for minutes, seconds in product(("59", "29,59", "30", "5,59"), (30, 60, 90, 3000, 7000)):
            expression = f"{minutes} {before},{(before + 1) % 24} * * *"
            start = jump - timedelta(seconds=seconds)
            found = await ticks.fetchval(expression, zone, start, 4)
            wanted = by_cronsim(expression, zone, start, 4)
            asked += 1
            if found != wanted:
                lost.append((expression, zone, start, found, wanted))
    assert asked > 20 * len(ZONES)
    assert not lost, f"{len(lost)} of {asked}: {lost[:3]}"


def jumps() -> Iterator[tuple[str, datetime]]:
    """The minutes in which the clocks of all zones are set forward, in some years."""
    for zone, year in product(ZONES, (1996, 2007, 2016, 2026)):
        start = datetime(year, 1, 1, tzinfo=UTC)
        here = ZoneInfo(zone)
        for day in changes(zone, start, start + timedelta(days=365)):
            moments = [day + timedelta(minutes=minute) for minute in range(24 * 60 + 1)]
            for last, first in pairwise(moments):
                if first.astimezone(here).utcoffset() > last.astimezone(here).utcoffset():  # type: ignore[operator]
                    yield zone, first


def changes(zone: str, start: datetime, end: datetime) -> list[datetime]:
    """The days on which the clock is changed."""
    here = ZoneInfo(zone)
    days = [start + timedelta(days=day) for day in range((end - start).days)]
    return [
        day
        for day in days
        if day.astimezone(here).utcoffset()
        != (day + timedelta(days=1)).astimezone(here).utcoffset()
    ]
