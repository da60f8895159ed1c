"""What cannot be is refused in one line, the same wherever it was written."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Runner, RunnerError
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.failures import translate
from tests.cli.running import fails

WRONG: list[dict[str, Any]] = [
    {},
    {"cron": "* * * * *", "every": "5 s"},
    {"cron": "30 2 * *"},
    {"cron": "0 30 2 * * *"},
    {"cron": "61 2 * * *"},
    {"cron": "30 24 * * *"},
    {"cron": "30 2 0 * *"},
    {"cron": "30 2 * 13 *"},
    {"cron": "30 2 * JUM *"},
    {"cron": "30 2 * * 8"},
    {"cron": "30 2 * * FRY"},
    {"cron": "5-1 * * * *"},
    {"cron": "*/0 * * * *"},
    {"cron": "a" * 10_000},
    {"cron": "* * * * " + "1," * 5000},
    {"cron": "@dayly"},
    {"cron": ""},
    {"every": "5 s", "overlap": "skpi"},
    {"every": "5 s", "missed": "two"},
    {"every": "5 s", "queue": "a b"},
    {"every": "5 s", "priority": 12},
    {"every": "5 s", "max_attempts": 0},
    {"cron": "@daily", "timezone": "Europe/Berln"},
    {"cron": "@daily", "timezone": "CET"},
    {"every": "0.5 s"},
    {"every": "5 s", "timeout": "0 s"},
    {"every": "5 s", "catch_up": "400 d"},
    {"every": "5 s", "jitter": "1.5 d"},
    {"every": "5 s", "jitter": "6 s"},
    {"at": "2031-01-01T00:00:00Z", "starts_at": "2030-01-01T00:00:00Z"},
    {"at": "9700-01-01T00:00:00Z"},
    {"every": "5 s", "starts_at": "2031-01-01T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z"},
    {"every": "5 s", "missed": "all"},
    {"every": "5 s", "missed": "all", "overlap": "replace"},
]


def in_python(given: dict[str, Any]) -> dict[str, Any]:
    """The same as the options of a call."""
    moments = {"starts_at", "ends_at", "at"}
    durations = {"every", "timeout", "catch_up", "jitter"}
    return {
        name: datetime.fromisoformat(value)
        if name in moments
        else value.replace(" ", "")
        if name in durations
        else value
        for name, value in given.items()
    }


def in_shell(given: dict[str, Any]) -> list[str]:
    """The same as the options of the command."""
    return [
        word
        for name, value in in_python(given).items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


async def refused_by_insert(database: Connection, given: dict[str, Any]) -> str:
    """What the INSERT says; nothing is stored."""
    names = ["name", "kind", *given]
    columns = ", ".join(names)
    values = ", ".join(f"r.{name}" for name in names)
    row = json.dumps({"name": "s", "kind": "work", **given})
    with pytest.raises(Exception) as raised:  # noqa: PT011  # whatever Postgres says
        await database.execute(
            f"INSERT INTO hybrid_runner.schedules ({columns}) SELECT {values} FROM"
            " jsonb_populate_record(NULL::hybrid_runner.schedules, $1::text::jsonb) AS r",
            row,
        )
    return str(translate(raised.value))


@pytest.mark.parametrize("given", WRONG, ids=lambda given: json.dumps(given)[:60])
async def test_the_line_is_the_same_in_code_and_at_the_insert(
    dsn: str, database: Connection, given: dict[str, Any]
) -> None:
    async with Runner(dsn) as app:
        with pytest.raises(ConfigurationError) as raised:
            await app.add_schedule("s", "work", **in_python(given))
    line = str(raised.value)
    assert line == await refused_by_insert(database, given)
    assert line.startswith("schedule 's': ")
    assert "\n" not in line
    assert len(line) < 300
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.schedules") == 0


@pytest.mark.parametrize("given", [WRONG[4], WRONG[17], WRONG[22]], ids=repr)
async def test_the_command_says_the_same_line(
    dsn: str, database: Connection, given: dict[str, Any]
) -> None:
    line = await refused_by_insert(database, given)
    assert fails("schedules", "add", "s", "work", *in_shell(given), "--dsn", dsn) == line


async def test_a_zone_that_is_nearly_right_is_named(dsn: str) -> None:
    async with Runner(dsn) as app:
        with pytest.raises(ConfigurationError, match="did you mean 'Europe/Berlin'"):
            await app.add_schedule("s", "work", cron="@daily", timezone="Europe/Berln")


async def test_what_code_takes_postgres_takes(dsn: str) -> None:
    """And the other way round: see the lines above."""
    right = [
        "* * * * *",
        "*/5 8-18 L * *",
        "0,30 8-18/2 1-7,15 JAN-MAR,DEC MON-FRI",
        "5/10 * * * SUN",
        "0 0 * * 7",
        "  30   2 * * *  ",
        "@DAILY",
        "0 0 l * *",
        "0 0 1 jan mon",
    ]
    async with Runner(dsn) as app:
        for cron in right:
            assert await app.add_schedule("s", "work", cron=cron) is not None


async def test_what_postgres_alone_knows_is_one_line_of_the_worker(dsn: str) -> None:
    app = Runner(dsn)

    @app.job("work")
    async def work(payload: dict[str, int]) -> None: ...

    app.schedule("s", work, cron="@daily", timezone="Europe/Berln")
    with pytest.raises(RunnerError, match="schedule 's': timezone"):
        async with app, app.worker():
            pass
