"""Budgets of a job: given by Python, by SQL and on the command line, refused with the same line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner import ConfigurationError, NewJob, Runner
from hybrid_runner.durations import LONGEST
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.kind_calls import declare_kinds
from tests.cli.running import succeeds

BUDGETS: dict[str, Any] = {"max_snoozes": 120, "max_duration": "29m", "finish_within": "2h"}
STORED = (120, timedelta(minutes=29), timedelta(hours=2))
OUT_OF_RANGE = " must be more than zero and at most ten years"
SQL = (
    "hybrid_runner.enqueue('work', max_snoozes => 120, max_duration => '29 minutes',"
    " finish_within => '2 hours')"
)


async def stored(database: Connection) -> list[tuple[object, ...]]:
    rows = await database.fetch(
        "SELECT max_snoozes, max_duration, finish_within FROM hybrid_runner.jobs ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def test_every_way_of_enqueuing_takes_budgets(dsn: str, database: Connection) -> None:
    """B5: alike and not, with keys and without, completed and as they are."""
    new = NewJob("work", max_snoozes=120, max_duration=STORED[1], finish_within=STORED[2])
    async with Runner(dsn) as app:
        await app.enqueue("work", {}, **BUDGETS)
        await app.enqueue_many("work", [1, 2], **BUDGETS)
        await app.enqueue_many("work", [1, 2], key=str, **BUDGETS)
        await app.enqueue_many("work", [new, 1])
        await app.enqueue_many("work", [NewJob("work", key="new"), new])
    await database.execute(f"SELECT {SQL}")
    with_nothing = (None, None, None)
    assert await stored(database) == [
        *[STORED] * 6,
        with_nothing,
        with_nothing,
        *[STORED] * 2,
    ]


async def test_the_command_takes_budgets(dsn: str, database: Connection) -> None:
    """B5"""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in BUDGETS.items()]
    succeeds("enqueue", "work", *options, "--dsn", dsn)
    assert await stored(database) == [STORED]


async def test_a_job_that_replaces_another_has_its_own_budgets(database: Connection) -> None:
    """B5"""
    await database.execute(f"SELECT {SQL[:-1]}, key => 'k')")
    await database.execute(
        "SELECT hybrid_runner.enqueue('work', key => 'k', max_snoozes => 1,"
        " on_conflict => 'replace')"
    )
    assert await stored(database) == [(1, None, None)]


@pytest.mark.parametrize(
    ("name", "value", "sql", "line"),
    [
        ("max_snoozes", -1, "-1", "max_snoozes must be 0 to 2147483647, not -1"),
        ("max_duration", 0, "'0'", "max_duration" + OUT_OF_RANGE),
        ("max_duration", -5, "'-5s'", "max_duration" + OUT_OF_RANGE),
        (
            "max_duration",
            timedelta(days=4000),
            "'11 years'",
            "max_duration" + OUT_OF_RANGE,
        ),
        (
            "finish_within",
            "0s",
            "'0'",
            "finish_within" + OUT_OF_RANGE,
        ),
        (
            "finish_within",
            timedelta(days=-1),
            "'-1 day'",
            "finish_within" + OUT_OF_RANGE,
        ),
    ],
)
async def test_a_budget_that_cannot_be_is_refused_with_the_same_line_everywhere(
    dsn: str, database: Connection, name: str, value: Any, sql: str, line: str
) -> None:
    """B5"""
    app = Runner(dsn)
    for refuse in (
        lambda: app.enqueue("work", {}, **{name: value}),
        lambda: app.enqueue_many("work", [{}], **{name: value}),
    ):
        with pytest.raises(ConfigurationError) as refusal:
            await refuse()
        assert str(refusal.value) == line
    with pytest.raises(asyncpg.InvalidParameterValueError) as said:
        await database.execute(f"SELECT hybrid_runner.enqueue('work', {name} => {sql})")
    assert str(said.value) == line
    with pytest.raises(asyncpg.CheckViolationError):
        await database.execute(
            f"INSERT INTO hybrid_runner.jobs (kind, {name}) VALUES ('work', {sql})"
        )
    await app.close()


async def test_ten_years_are_as_long_everywhere(dsn: str, database: Connection) -> None:
    """B5: ten years of Python have more days than those of Postgres, whose months have thirty."""
    most: dict[str, Any] = {"max_duration": LONGEST, "finish_within": LONGEST, "timeout": LONGEST}
    async with Runner(dsn) as app:
        await app.enqueue("work", {}, **most)
        await app.enqueue_many("work", [1], **most)
        await app.enqueue_many("work", [1], key=str, **most)
    kind = DeclaredKind("work", "a", None, None, LONGEST, LONGEST)
    await declare_kinds(database, [kind])
    await database.execute("SELECT hybrid_runner.enqueue('work', max_duration => '10 years')")
    assert len(await stored(database)) == 4


@pytest.mark.parametrize("value", [True, 1.5, "many", 2**31])
async def test_a_count_of_snoozes_is_a_whole_number(dsn: str, value: Any) -> None:
    """B5"""
    with pytest.raises(ConfigurationError, match="max_snoozes must be 0 to 2147483647, not "):
        await Runner(dsn).enqueue("work", {}, max_snoozes=value)


async def test_what_is_no_duration_is_named(dsn: str) -> None:
    """B5"""
    with pytest.raises(ConfigurationError, match="max_duration: 'soon' is not a duration"):
        await Runner(dsn).enqueue("work", {}, max_duration="soon")
