"""One worker measures schedules for all, and health says what is wrong with them."""

from __future__ import annotations

import time

import pytest

from hybrid_runner.model.ticks import ScheduleMeasures
from hybrid_runner.storage import tick_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.schedules import MOST_NAMED, Schedules, complaints_of
from tests.support.scheduled import a_worker

WELL = ScheduleMeasures(3, 1, 0, 4.2, 0, None, (), ())


async def stored(database: Connection, name: str, **columns: str) -> None:
    """A schedule that fires every hour, unless it is changed."""
    await database.execute(
        "INSERT INTO hybrid_runner.schedules (name, kind, every) VALUES ($1, 'work', '1 hour')",
        name,
    )
    for column, value in columns.items():
        await database.execute(
            f"UPDATE hybrid_runner.schedules SET {column} = {value} WHERE name = $1", name
        )


async def test_schedules_are_measured_as_they_stand(database: Connection) -> None:
    await a_worker(database, kinds=("work",), schedules=("declared",))
    await stored(database, "made")
    await stored(database, "declared", declared="true")
    await stored(database, "removed", declared="true")
    await stored(database, "paused", paused_at="now()")
    await stored(database, "broken", paused_at="now()", note="'why'")
    await stored(database, "unknown", kind="'nobodys'")
    measures = await tick_calls.measure_schedules(database, 5)
    assert (measures.active, measures.paused, measures.undeclared) == (3, 2, 1)
    assert measures.next_in is not None
    assert 0 < measures.next_in <= 3600
    assert (measures.overdue, measures.latest) == (0, None)
    assert measures.failed == ("broken",)
    assert measures.unknown_kinds == ("unknown (nobodys)",)


async def test_a_tick_that_nobody_fires_is_overdue_after_a_minute(database: Connection) -> None:
    await a_worker(database)
    for name, seconds in (("late", 90), ("later", 200), ("soon", 30)):
        await stored(database, name)
        await database.execute(
            "UPDATE hybrid_runner.schedules SET next_at = now() - make_interval(secs => $2)"
            " WHERE name = $1",
            name,
            float(seconds),
        )
    measures = await tick_calls.measure_schedules(database, 5)
    assert (measures.overdue, measures.latest) == (2, "later")
    assert measures.next_in == pytest.approx(-200, abs=60)


async def test_where_nothing_is_scheduled_there_is_nothing_to_say(database: Connection) -> None:
    measures = await tick_calls.measure_schedules(database, 5)
    assert measures == ScheduleMeasures(0, 0, 0, None, 0, None, (), ())
    assert complaints_of(measures) == []


async def test_the_duty_speaks_only_while_it_is_held(database: Connection) -> None:
    duty = Schedules()
    await duty.run(database)
    assert duty.metric_values() == {}
    duty.held_until = time.monotonic() + 60
    assert duty.complaints == ()
    assert duty.metric_values()["hybrid_runner_schedules"]["active",] == 0
    duty.end_hold()
    assert duty.metric_values() == {}


def test_who_is_well_has_no_complaint() -> None:
    assert complaints_of(WELL) == []


def test_each_complaint_names_what_it_is_about() -> None:
    late, unknown, failed = complaints_of(
        WELL._replace(
            next_in=-190.0, overdue=2, latest="nightly", failed=("x",), unknown_kinds=("a (b)",)
        )
    )
    assert late.startswith("2 schedules have not fired in time, nightly for 3m10s")
    assert "a (b)" in unknown
    assert failed.endswith(": x")


def test_no_more_than_a_few_are_named() -> None:
    names = tuple(f"s{number}" for number in range(MOST_NAMED + 1))
    (line,) = complaints_of(WELL._replace(failed=names))
    assert line.endswith("s4 and others")
