"""Rows that cannot be are refused in one line; one that fires badly keeps no other from firing."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.tick_clock import HOUR, NOON, Schedules

HOURLY = "every => '1 hour'"
LONG = "repeat('x', 1000000)"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("cron => '@dayly'", "cron: there is no '@dayly': did you mean @daily?"),
        ("cron => '@reboot'", "cron: there is no '@reboot': give one of @hourly, @daily"),
        ("cron => '0 0 0 1 1 *'", "cron: five fields are needed .*, not 6: below a minute use"),
        ("cron => ''", "cron: five fields are needed .*, not 0"),
        ("cron => '61 * * * *'", "cron: minute '61' is outside 0 to 59"),
        ("cron => '* 24 * * *'", "cron: hour '24' is outside 0 to 23"),
        ("cron => '* * 0 * *'", "cron: day '0' is outside 1 to 31"),
        ("cron => '* * * FEV *'", "cron: month 'FEV' is no name: did you mean FEB"),
        ("cron => '* * * * MOM'", "cron: weekday 'MOM' is no name: did you mean MON"),
        ("cron => '* 22-2 * * *'", "cron: hour '22-2' runs backwards: write 22-23,0-2"),
        ("cron => '*/0 * * * *'", "cron: minute '.*/0' steps by nothing"),
        ("cron => 'a-b * * * *'", "cron: minute 'A' is no number"),
        ("cron => '-5 * * * *'", "cron: minute '-5' is none of"),
        ("cron => '1,,2 * * * *'", "cron: minute '' is none of"),
        ("cron => E'1\\n2 * * * *'", "cron: "),
        ("cron => E'\\u0001\\u202e * * * *'", "cron: minute '\\?.*' is none of"),
        (f"cron => {LONG}", "cron: an expression has at most 255 bytes, not 1000000"),
        (f"{HOURLY}, timezone => 'Europe/Berlni'", "timezone: .* did you mean 'Europe/Berlin'?"),
        (f"{HOURLY}, timezone => 'Berlin'", "timezone: .* did you mean 'Europe/Berlin'?"),
        (f"{HOURLY}, timezone => 'New York'", "timezone: .* did you mean 'America/New_York'?"),
        (f"{HOURLY}, timezone => 'CEST'", "timezone: there is no 'CEST': name a place"),
        (f"{HOURLY}, timezone => 'CET'", "timezone: there is no 'CET': name a place"),
        (f"{HOURLY}, timezone => 'Foo5Bar'", "timezone: there is no 'Foo5Bar'"),
        (f"{HOURLY}, timezone => 'America/Nowhere5'", "timezone: there is no"),
        (f"{HOURLY}, timezone => '+02:00'", "timezone: there is no"),
        (f"{HOURLY}, timezone => ''", "timezone: there is no ''"),
        (f"{HOURLY}, timezone => {LONG}", "timezone: there is no 'x+…': name a place"),
        (f"{HOURLY}, timezone => NULL", "must not be NULL"),
        ("every => '0.5 s'", "every must be 1 second to ten years, not 00:00:00.5"),
        ("every => '-1 hour'", "every must be 1 second to ten years"),
        ("every => '1 month'", "every: a month has no fixed length: give days, or cron '0 0 1"),
        ("every => '100 years'", "every: a month has no fixed length"),
        ("every => '1 day -23 hours'", "every must be 1 second to ten years"),
        ("every => '1000000 hours -41000 days'", "every must be 1 second to ten years"),
        ("", "give one of cron, every and at, not none"),
        (f"cron => '@daily', {HOURLY}", "give one of cron, every and at, not cron and every"),
        ("at => 'infinity'", "at must be between the years 1970 and 9000, not infinity"),
        ("at => '0044-01-01 BC'", "at must be between the years 1970 and 9000"),
        (f"{HOURLY}, starts_at => '-infinity'", "starts_at must be between"),
        (f"{HOURLY}, ends_at => '2001-01-01', starts_at => '2002-01-01'", "ends_at must not be"),
        ("at => '2030-01-01', ends_at => '2031-01-01'", "at is one time"),
        (
            f"{HOURLY}, overlap => 'skpi'",
            "overlap must be .* or replace, not 'skpi': did you mean skip",
        ),
        (f"{HOURLY}, overlap => NULL", "overlap must be .*, not NULL"),
        (f"{HOURLY}, missed => 'every'", "missed must be one, all or none, not 'every'"),
        (f"{HOURLY}, catch_up => '400 days'", "catch_up must be zero to 366 days"),
        (f"{HOURLY}, jitter => '2 hours'", "jitter must not be more than every"),
        (f"{HOURLY}, jitter => '2 days'", "jitter must be zero to a day"),
        (f"{HOURLY}, timeout => '0'", "timeout must be more than zero"),
        (f"{HOURLY}, priority => 10", "priority must be 0 to 9, not 10"),
        (f"{HOURLY}, priority => 2000000000", "priority must be 0 to 9"),
        (f"{HOURLY}, max_attempts => 0", "max_attempts must be 1 to 1000, not 0"),
        (
            f"{HOURLY}, queue => 'a b'",
            "queue must be 1 to 48 letters, digits and _ . : / -, not 'a b'",
        ),
        (f"{HOURLY}, kind => E'a\\nb'", "kind must be 1 to 128 letters.*, not 'a\\?b'"),
        (f"{HOURLY}, name => {LONG}", "name must be 1 to 128"),
        (
            f"{HOURLY}, payload => to_jsonb({LONG} || repeat('y', 100000))",
            "payload must be JSON of",
        ),
    ],
)
async def test_what_cannot_be_is_refused_in_one_short_line(
    database: Connection, options: str, line: str
) -> None:
    given = {"name": "'s'", "kind": "'work'"}
    for part in re.split(r", (?=\w+ => )", options) if options else []:
        key, value = part.split(" => ", 1)
        given[key] = value
    called = ", ".join(f"{key} => {value}" for key, value in given.items())
    columns, values = ", ".join(given), ", ".join(given.values())
    said = []
    for statement in (
        f"SELECT hybrid_runner.schedule({called})",
        f"INSERT INTO hybrid_runner.schedules ({columns}) VALUES ({values})",
    ):
        if "2000000000" in statement and "INSERT" in statement:
            continue  # which the type of the column refuses
        with pytest.raises(asyncpg.InvalidParameterValueError) as raised:
            await database.execute(statement)
        said.append(str(raised.value))
    assert len({*said}) == 1
    assert re.search(line, said[0]), said[0]
    assert said[0].startswith("schedule '")
    assert len(said[0]) < 300
    assert said[0].isprintable()


@pytest.mark.parametrize(
    "fault",
    [
        "timezone = 'Europe/Nowhere', cron = '0 * * * *', every = NULL",
        "cron = 'nonsense', every = NULL",
        "kind = 'not a kind'",
        "queue = 'not a queue'",
        "priority = 77",
        "every = '0'",
        "jitter = '-5000000 days'",
    ],
)
async def test_a_row_that_cannot_fire_is_paused_with_a_note_and_others_go_on(
    schedules: Schedules, fault: str
) -> None:
    await schedules.store("a", every=HOUR)
    await schedules.store("b", every=HOUR)
    await schedules.store("c", every=HOUR)
    await schedules.connection.execute(
        "ALTER TABLE hybrid_runner.schedules DISABLE TRIGGER check_schedule;"
        f" UPDATE hybrid_runner.schedules SET {fault} WHERE name = 'b';"
        "ALTER TABLE hybrid_runner.schedules ENABLE TRIGGER check_schedule"
    )
    assert await schedules.fire(NOON + HOUR) == {"fired": 1, "dropped": 1}
    for name in ("a", "c"):
        assert await schedules.ticks(name) == [NOON + HOUR]
    row = await schedules.row("b")
    assert row["paused_at"] is not None
    assert row["note"].startswith("paused, since it could not fire: ")
    assert row["dropped"] == 1
    assert await schedules.fire(NOON + 2 * HOUR) == {"skipped": 1}


@pytest.mark.parametrize(
    "cron",
    [
        ",".join(["0-59"] * 49) + " * * * *",
        "0-59/1,*/1 0-23/1 1-31/1 1-12/1 0-7/1",
        "0 0 29 2 */7",
        "59 23 L,LW,31W,29W 2 1#5,2#5,0L",
    ],
)
async def test_whatever_fits_is_answered_within_few_steps(unchanged: Connection, cron: str) -> None:
    """Counted in calls, since time says nothing on a busy machine."""
    await unchanged.execute("SET track_functions = 'all'")
    found: Any = await unchanged.fetchval(
        "SELECT hybrid_runner.next_fire($1, 'Europe/Berlin', '2026-03-01')", cron
    )
    assert found is not None
    calls = await unchanged.fetchval(
        "SELECT sum(pg_stat_get_xact_function_calls(p.oid)) FROM pg_proc AS p"
        " WHERE p.pronamespace = 'hybrid_runner'::regnamespace"
    )
    assert calls is None or calls < 3000


async def test_a_tick_that_waited_and_cannot_be_stored_is_named(schedules: Schedules) -> None:
    """There is no next one to be named in its place, and whoever fires reads a time there."""
    await schedules.store(at=NOON + HOUR, overlap="queue")
    await schedules.connection.execute("SELECT hybrid_runner.run_now('s')")
    assert await schedules.fire(NOON + HOUR) == {"fired": 1}
    await schedules.connection.execute("""
        DELETE FROM hybrid_runner.jobs;
        ALTER TABLE hybrid_runner.jobs ADD CONSTRAINT none_any_more CHECK (false);
    """)
    (row,) = await schedules.connection.fetch("SELECT * FROM hybrid_runner.fire_schedules()")
    assert (row["outcome"], row["tick"], row["late"]) == ("dropped", NOON + HOUR, timedelta(0))
