"""What becomes of ticks that nobody could fire in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.tick_clock import HOUR, MINUTE, NOON, Schedules

HOURLY = [{"every": HOUR}, {"cron": "0 * * * *"}, {"cron": "0 * * * *", "timezone": "Asia/Tokyo"}]
"""The same ticks."""


@pytest.mark.parametrize("hourly", HOURLY)
@pytest.mark.parametrize(
    ("missed", "outcomes", "ticks"),
    [
        ("one", {"caught_up": 3}, [3]),
        ("all", {"caught_up": 3}, [1, 2, 3]),
        ("none", {"dropped": 3}, []),
    ],
)
async def test_after_three_hours_each_policy_does_what_its_page_says(
    schedules: Schedules,
    hourly: dict[str, Any],
    missed: str,
    outcomes: dict[str, int],
    ticks: list[int],
) -> None:
    await schedules.store(**hourly, missed=missed, overlap="allow")
    assert await schedules.fire(NOON + 3 * HOUR + 10 * MINUTE) == outcomes
    assert await schedules.ticks() == [NOON + hours * HOUR for hours in ticks]
    row = await schedules.row()
    assert row["next_at"] == NOON + 4 * HOUR
    assert {word: row[word] for word in ("caught_up", "dropped") if row[word]} == outcomes
    assert await schedules.fire() == {}


@pytest.mark.parametrize("missed", ["one", "all", "none"])
async def test_a_tick_that_is_seconds_late_is_fired_by_every_policy(
    schedules: Schedules, missed: str
) -> None:
    await schedules.store(every=HOUR, missed=missed, overlap="allow", catch_up=timedelta(0))
    assert await schedules.fire(NOON + HOUR + timedelta(seconds=50)) == {"fired": 1}
    assert await schedules.ticks() == [NOON + HOUR]


async def test_of_several_that_are_seconds_late_none_fires_the_last_one(
    schedules: Schedules,
) -> None:
    await schedules.store(every=timedelta(seconds=1), missed="none")
    assert await schedules.fire(NOON + timedelta(seconds=3.2)) == {"fired": 1, "dropped": 2}
    assert await schedules.ticks() == [NOON + timedelta(seconds=3)]


@pytest.mark.parametrize("hourly", HOURLY)
async def test_what_is_older_than_catch_up_is_dropped_and_counted(
    schedules: Schedules, hourly: dict[str, Any]
) -> None:
    await schedules.store(**hourly, missed="all", overlap="allow", catch_up=4 * HOUR)
    assert await schedules.fire(NOON + 10 * HOUR + MINUTE) == {"caught_up": 4, "dropped": 6}
    assert await schedules.ticks() == [NOON + hours * HOUR for hours in (7, 8, 9, 10)]


@pytest.mark.parametrize("missed", ["one", "all"])
async def test_without_a_catch_up_nothing_is_caught_up(schedules: Schedules, missed: str) -> None:
    await schedules.store(every=HOUR, missed=missed, overlap="allow", catch_up=timedelta(0))
    assert await schedules.fire(NOON + 2 * HOUR + 10 * MINUTE) == {"dropped": 2}
    assert await schedules.ticks() == []
    assert (await schedules.row())["next_at"] == NOON + 3 * HOUR


async def test_at_most_a_thousand_are_caught_up_the_newest_in_their_order(
    schedules: Schedules,
) -> None:
    await schedules.store(every=timedelta(seconds=2), missed="all", overlap="allow")
    assert await schedules.fire(NOON + HOUR) == {"caught_up": 1000, "dropped": 800}
    ticks = await schedules.ticks()
    assert ticks == [NOON + timedelta(seconds=2 * n) for n in range(801, 1801)]


async def test_a_cron_of_every_minute_catches_up_the_newest_thousand(schedules: Schedules) -> None:
    await schedules.store(cron="* * * * *", missed="all", overlap="allow", catch_up=48 * HOUR)
    outcomes = await schedules.fire(NOON + 30 * HOUR)
    assert outcomes == {"caught_up": 1000, "dropped": 800}
    assert await schedules.ticks() == [NOON + n * MINUTE for n in range(801, 1801)]


async def test_one_time_fires_once(schedules: Schedules) -> None:
    assert await schedules.store(at=NOON + HOUR) == NOON + HOUR
    assert await schedules.fire(NOON + HOUR) == {"fired": 1}
    assert (await schedules.row())["next_at"] is None
    assert await schedules.fire(NOON + 48 * HOUR) == {}
    assert await schedules.store(at=NOON + HOUR) is None


async def test_one_time_that_was_over_when_it_was_made_is_late_and_not_forgotten(
    schedules: Schedules,
) -> None:
    await schedules.store(at=NOON - HOUR)
    assert await schedules.fire() == {"caught_up": 1}
    assert await schedules.ticks() == [NOON - HOUR]
    await schedules.store("old", at=NOON - 48 * HOUR)
    assert await schedules.fire() == {"dropped": 1}
    assert await schedules.ticks("old") == []


async def test_the_clock_set_back_fires_nothing_twice(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="allow")
    await schedules.store("c", cron="0 * * * *", overlap="allow")
    await schedules.fire(NOON + 2 * HOUR)
    await schedules.at(NOON - 5 * HOUR)
    await schedules.store("c", cron="*/30 * * * *", overlap="allow")  # nor what was changed since
    await schedules.connection.execute("SELECT hybrid_runner.pause_schedule('s')")
    await schedules.connection.execute("SELECT hybrid_runner.resume_schedule('s')")
    for minutes in range(0, 60 * 9, 15):
        await schedules.fire(NOON - 5 * HOUR + minutes * MINUTE)
    for name in ("s", "c"):
        ticks = await schedules.ticks(name)
        assert len(ticks) == len({*ticks}) >= 2, name
        assert sorted(filter(None, ticks)) == ticks


async def test_the_clock_set_forward_is_an_outage(schedules: Schedules) -> None:
    await schedules.store(every=HOUR)
    assert await schedules.fire(NOON + 5 * HOUR + 2 * MINUTE) == {"caught_up": 5}
    assert (await schedules.row())["next_at"] == NOON + 6 * HOUR


async def test_other_rules_of_zones_are_reckoned_with_from_the_last_tick_on(
    schedules: Schedules,
) -> None:
    await schedules.store(cron="0 14 * * *", timezone="Europe/Berlin")  # noon by UTC
    await schedules.store("u", cron="0 12 * * *")
    await schedules.fire(NOON + 24 * HOUR)
    await schedules.connection.execute(  # as older rules had it
        "UPDATE hybrid_runner.schedules SET next_at = next_at + interval '1 hour'"
    )
    await schedules.fire()
    assert (await schedules.row())["next_at"] == NOON + 49 * HOUR
    await schedules.connection.execute("UPDATE hybrid_runner.zone_rules SET server_version = '9.6'")
    assert await schedules.fire() == {}
    assert (await schedules.row())["next_at"] == NOON + 48 * HOUR
    assert (await schedules.row("u"))["next_at"] == NOON + 49 * HOUR
    assert await schedules.connection.fetchval(
        "SELECT server_version = current_setting('server_version') FROM hybrid_runner.zone_rules"
    )
