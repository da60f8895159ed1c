"""When a schedule fires: its anchors, its limits, its jitter, and what a change does to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.tick_clock import HOUR, MINUTE, NOON, Schedules

NEXT = "SELECT hybrid_runner.next_ticks($1, $2, $3, $4)"


async def test_every_is_anchored_so_that_no_delay_moves_it(schedules: Schedules) -> None:
    await schedules.at(NOON + 7 * MINUTE)
    assert await schedules.store(every=HOUR) == NOON + HOUR
    await schedules.fire(NOON + HOUR + timedelta(seconds=42))
    assert (await schedules.row())["next_at"] == NOON + 2 * HOUR
    start = NOON + 5 * MINUTE
    assert await schedules.store("a", every=HOUR, starts_at=start) == start + HOUR
    assert await schedules.store("b", every=HOUR, starts_at=start + HOUR) == start + HOUR


async def test_nothing_fires_before_its_start_or_after_its_end(schedules: Schedules) -> None:
    limits: dict[str, Any] = {
        "starts_at": NOON + 3 * HOUR,
        "ends_at": NOON + 5 * HOUR,
        "overlap": "allow",
    }
    await schedules.store(every=HOUR, **limits)
    await schedules.store("c", cron="0 * * * *", **limits)
    for hours in range(9):
        await schedules.fire(NOON + hours * HOUR)
    for name in ("s", "c"):
        assert await schedules.ticks(name) == [NOON + hours * HOUR for hours in (3, 4, 5)]
        assert (await schedules.row(name))["next_at"] is None


async def test_jitter_is_the_same_in_the_preview_and_in_the_job(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, jitter=10 * MINUTE, overlap="allow")
    preview = await schedules.connection.fetch("SELECT * FROM hybrid_runner.next_ticks_of('s', 5)")
    for hours in range(1, 6):
        await schedules.fire(NOON + hours * HOUR)
    jobs = await schedules.connection.fetch(
        "SELECT tick, run_at FROM hybrid_runner.jobs ORDER BY tick"
    )
    assert [tuple(row) for row in preview] == [tuple(row) for row in jobs]
    delays = {row["run_at"] - row["tick"] for row in jobs}
    assert len(delays) > 1
    assert all(timedelta(0) <= delay < 10 * MINUTE for delay in delays)


async def test_the_same_again_changes_nothing(schedules: Schedules) -> None:
    await schedules.store(every=HOUR)
    before = await schedules.row()
    await schedules.at(NOON + 3 * HOUR)
    assert await schedules.store(every=HOUR) == NOON + HOUR
    assert await schedules.row() == before


async def test_another_payload_leaves_its_times_and_other_times_begin_anew(
    schedules: Schedules,
) -> None:
    await schedules.store(every=HOUR)
    await schedules.at(NOON + 3 * HOUR)
    assert await schedules.store(every=HOUR, payload='{"a": 1}') == NOON + HOUR
    assert await schedules.store(every=2 * HOUR) == NOON + 4 * HOUR


async def test_ticks_do_not_happen_while_it_is_paused(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, missed="all", overlap="allow")
    assert await schedules.connection.fetchval("SELECT hybrid_runner.pause_schedule('s')")
    assert not await schedules.connection.fetchval("SELECT hybrid_runner.pause_schedule('s')")
    assert await schedules.fire(NOON + 5 * HOUR + MINUTE) == {}
    assert await schedules.connection.fetchval("SELECT hybrid_runner.next_tick()") is None
    assert not await schedules.connection.fetch("SELECT hybrid_runner.next_ticks_of('s')")
    assert await schedules.connection.fetchval("SELECT hybrid_runner.resume_schedule('s')")
    assert await schedules.fire() == {}
    assert (await schedules.row())["next_at"] == NOON + 6 * HOUR


async def test_what_never_fires_says_so(schedules: Schedules) -> None:
    heard: list[str] = []

    def hear(_: Any, message: Any) -> None:
        heard.append(message.message)

    schedules.connection.add_log_listener(hear)
    assert await schedules.store(cron="0 0 30 2 *") is None
    assert heard == ["schedule 's' will never fire"]
    schedules.connection.remove_log_listener(hear)


async def test_what_code_declares_fires_while_a_live_worker_declares_it(
    schedules: Schedules,
) -> None:
    await schedules.store(every=HOUR, overlap="allow")
    await schedules.connection.execute("UPDATE hybrid_runner.schedules SET declared = true")
    assert await schedules.fire(NOON + HOUR) == {}
    assert await schedules.connection.fetchval("SELECT hybrid_runner.next_tick()") is None
    await schedules.worker(["s"], "old")
    await schedules.worker(["other"], "new")
    assert await schedules.fire() == {"fired": 1}
    await schedules.connection.execute(
        "UPDATE hybrid_runner.workers SET heartbeat_at = heartbeat_at - interval '1 hour'"
    )
    assert await schedules.fire(NOON + 2 * HOUR) == {}
    await schedules.worker(["s"], "newer")
    assert await schedules.fire(NOON + 4 * HOUR + 2 * MINUTE) == {"caught_up": 3}
    assert await schedules.ticks() == [NOON + HOUR, NOON + 4 * HOUR]


@pytest.mark.parametrize(
    ("what", "cron", "zone", "start", "ticks"),
    [
        (
            "a fixed time that is skipped fires as the clock jumps",
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28 12:00",
            ["2026-03-29 01:00", "2026-03-30 00:30"],
        ),
        (
            "two that are skipped fire once",
            "15,45 2 * * *",
            "Europe/Berlin",
            "2026-03-28 12:00",
            ["2026-03-29 01:00", "2026-03-30 00:15"],
        ),
        (
            "a fixed time that comes twice fires the first time",
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24 12:00",
            ["2026-10-25 00:30", "2026-10-26 01:30"],
        ),
        (
            "after the first of two it waits for the next day",
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25 00:45",
            ["2026-10-26 01:30"],
        ),
        (
            "with a star an hour that comes twice counts twice",
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-24 23:55",
            ["2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30"],
        ),
        (
            "with a star an hour that is skipped does not count",
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-03-28 23:55",
            ["2026-03-30 00:00"],
        ),
        (
            "each hour is an hour",
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24 23:30",
            ["2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"],
        ),
        (
            "half an hour that is skipped",
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03 00:00",
            ["2026-10-03 15:30", "2026-10-04 15:15"],
        ),
        (
            "half an hour that comes twice",
            "*/15 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04 14:20",
            ["2026-04-04 14:30", "2026-04-04 14:45", "2026-04-04 15:00", "2026-04-04 15:15"],
        ),
        (
            "a midnight that is skipped",
            "0 0 * * *",
            "America/Santiago",
            "2026-09-05 12:00",
            ["2026-09-06 04:00", "2026-09-07 03:00"],
        ),
        (
            "a midnight that comes twice",
            "0 0 * * *",
            "America/Havana",
            "2026-10-31 12:00",
            ["2026-11-01 04:00", "2026-11-02 05:00"],
        ),
        (
            "a day that was skipped",
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-29 12:00",
            ["2011-12-29 22:00", "2011-12-30 10:00", "2011-12-30 22:00"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value and "-" not in value else "",
)
async def test_where_the_clock_is_changed(
    unchanged: Connection, what: str, cron: str, zone: str, start: str, ticks: list[str]
) -> None:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    found = [row[0] for row in await unchanged.fetch(NEXT, cron, zone, len(ticks), begin)]
    assert found == [datetime.fromisoformat(tick).replace(tzinfo=UTC) for tick in ticks], what


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 9 1W * *", ["2026-01-01", "2026-02-02", "2026-03-02", "2026-04-01", "2026-05-01"]),
        ("0 9 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16", "2026-04-15", "2026-05-15"]),
        ("0 9 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30", "2026-05-29"]),
        ("0 9 31W * *", ["2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31", "2026-08-31"]),
        ("0 9 L * *", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"]),
        ("0 9 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24", "2026-05-29"]),
        ("0 9 * * mon#2", ["2026-01-12", "2026-02-09", "2026-03-09", "2026-04-13", "2026-05-11"]),
        ("0 9 * * fri-sun", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-09"]),
        ("0 9 13 * 5", ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]),
        ("0 9 29 2 */7", ["2032-02-29", "2060-02-29", "2088-02-29", "2128-02-29"]),
    ],
)
async def test_days_that_a_field_names(unchanged: Connection, cron: str, days: list[str]) -> None:
    """By the calendar of 2026, which begins on a Thursday."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = await unchanged.fetch(NEXT, cron, "UTC", len(days), start)
    assert [row[0].date().isoformat() for row in rows] == days


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 *"])
async def test_a_day_that_no_year_has_is_never(unchanged: Connection, cron: str) -> None:
    found = await unchanged.fetchval("SELECT hybrid_runner.next_fire($1, 'UTC', now())", cron)
    assert found is None


@pytest.mark.parametrize("after", ["infinity", "-infinity", "0044-01-01 BC", "9999-01-01"])
async def test_next_fire_has_an_answer_for_any_time(unchanged: Connection, after: str) -> None:
    found = await unchanged.fetchval(
        "SELECT hybrid_runner.next_fire('* * * * *', 'Europe/Berlin', $1::text::timestamptz)", after
    )
    assert (found is None) == (after in {"infinity", "9999-01-01"})
