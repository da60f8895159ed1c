"""What `app.schedule(…)` takes, and the line with which it refuses the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import ConfigurationError, Runner, ScheduleOptions
from hybrid_runner.model.schedules import MOST_DECLARED, DeclaredSchedule

BEGIN, END = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC)


class Report(BaseModel):
    kind: str
    pages: int = 1


def an_app() -> Runner:
    return Runner("postgresql://nobody@127.0.0.1/none")


def test_a_schedule_is_declared_with_all_that_was_said_of_it() -> None:
    app = an_app()

    @app.job("report", queue="mail", max_attempts=7, timeout="2h")
    async def report(payload: Report) -> None: ...

    made = app.schedule(
        "nightly",
        report,
        Report(kind="daily"),
        cron="30 2 * * *",
        timezone="Europe/Berlin",
        queue="slow",
        priority=2,
        max_attempts=3,
        timeout="10m",
        overlap="queue",
        missed="all",
        catch_up="6h",
        jitter="2s",
        starts_at=BEGIN,
        ends_at=END,
    )
    assert made == DeclaredSchedule(
        name="nightly",
        kind="report",
        payload='{"kind":"daily","pages":1}',
        cron="30 2 * * *",
        timezone="Europe/Berlin",
        queue="slow",
        priority=2,
        max_attempts=3,
        timeout=timedelta(minutes=10),
        overlap="queue",
        missed="all",
        catch_up=timedelta(hours=6),
        jitter=timedelta(seconds=2),
        starts_at=BEGIN,
        ends_at=END,
    )
    assert app.registry.schedules == [made]


def test_what_is_not_said_is_left_to_the_defaults_and_to_the_kind() -> None:
    app = an_app()

    @app.job("ping", queue="fast")
    async def ping(payload: dict[str, Any]) -> None: ...

    assert app.schedule("pulse", ping, every="10s") == DeclaredSchedule(
        "pulse", "ping", every=timedelta(seconds=10)
    )


def test_a_kind_of_another_application_is_named() -> None:
    app = an_app()
    app.schedule("b", "elsewhere", {"n": 1}, at=BEGIN)
    app.schedule("a", "elsewhere", cron="@daily")
    assert [(each.name, each.payload) for each in app.registry.schedules] == [
        ("a", "{}"),
        ("b", '{"n":1}'),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give one of cron, every and at, not none"),
        ({"cron": "* * * * *", "every": 5}, "give one of cron, every and at, not cron and every"),
        ({"every": "0.5s"}, "every must be 1 second to ten years, not 00:00:00.5"),
        ({"every": "often"}, "every: 'often' is not a duration: use seconds (30), '30s', '5m',"),
        ({"every": "20000d"}, "every: duration"),
        ({"at": datetime(2030, 1, 1)}, "at must be a datetime with a time zone"),  # noqa: DTZ001
        ({"at": "2030-01-01"}, "at must be a datetime with a time zone"),
        ({"every": 5, "starts_at": END, "ends_at": BEGIN}, "ends_at must not be before starts_at"),
        (
            {"every": 5, "overlap": "skpi"},
            "overlap must be skip, queue, allow or replace, not 'skpi': did you mean skip?",
        ),
        ({"every": 5, "missed": "two"}, "missed must be one, all or none, not 'two'"),
        ({"every": 5, "jitter": "-3s"}, "jitter: '-3s' is not a duration"),
        (
            {"every": 5, "timeout": 0},
            "timeout must be more than zero and at most ten years, not",
        ),
        ({"every": 5, "jitter": 6}, "jitter must not be more than every, which is 00:00:05"),
        ({"every": 5, "catch_up": "400d"}, "catch_up must be zero to 366 days, not 400 days"),
        ({"at": BEGIN, "ends_at": END}, "at is one time: it goes without starts_at and ends_at"),
        (
            {"every": 5, "timezone": 7},
            "timezone: there is no '7': name a place, such as",
        ),
        ({"every": 5, "priority": 12}, "priority must be 0 to 9, not 12"),
        ({"every": 5, "max_attempts": 0}, "max_attempts must be 1 to 1000, not 0"),
        (
            {"every": 5, "queue": "a b"},
            "queue must be 1 to 48 letters, digits and _ . : / -, not 'a b'",
        ),
        ({"evrey": 5}, "a schedule has no option 'evrey': did you mean 'every'?"),
        ({"cron": 5}, "cron must be a text of five fields, such as '30 2 * * *', not '5'"),
        ({"cron": "30 2 * *"}, "cron: five fields are needed (minute hour day month weekday), not"),
        ({"cron": "0 30 2 * * *"}, "not 6: below a minute use every"),
        ({"cron": "1 2 * * * " * 100}, "cron: an expression has at most 255 bytes, not 1000"),
    ],
    ids=repr,
)
def test_what_cannot_be_is_refused_where_it_was_written(options: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        an_app().schedule("s", "work", **options)
    assert str(raised.value).startswith(f"schedule 's': {said}" if "not 6" not in said else "sch")
    assert said in str(raised.value)


@pytest.mark.parametrize("field", ["cron", "timezone", "overlap", "missed", "every", "queue"])
def test_the_line_is_short_whatever_was_given(field: str) -> None:
    options: Any = {"every": 5} | {field: "é\n" * 20_000}
    with pytest.raises(ConfigurationError) as raised:
        an_app().schedule("s", "work", **options)
    assert len(str(raised.value)) < 300
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("option", sorted(ScheduleOptions.__optional_keys__))
@pytest.mark.parametrize(
    "value",
    ["", "\x00", "\ud800", "\x1b[31m", "x" * 10_000, -1, 10**400, float("nan"), True, b"x", [], {}],
    ids=lambda value: repr(value)[:12],
)
def test_whatever_is_given_is_taken_or_refused_in_one_line(option: str, value: Any) -> None:
    when = {} if option in ("cron", "every", "at") else {"every": 3600}
    line = refused(**when | {option: value})
    assert line.isprintable()
    assert len(line) < 300


def refused(**options: Any) -> str:
    """What is said of it; empty if it is taken."""
    try:
        an_app().schedule("s", "work", **options)
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "é", "a\n", 7, None])
def test_a_name_is_written_as_the_name_of_a_kind(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="name must be 1 to 128 letters, digits"):
        an_app().schedule(name, "work", every=5)


def test_a_payload_that_does_not_fit_its_handler_is_refused() -> None:
    app = an_app()

    @app.job("report")
    async def report(payload: Report) -> None: ...

    kinds: tuple[Any, ...] = (report, "report")
    for kind in kinds:
        with pytest.raises(ConfigurationError, match="schedule 's': the payload does not fit repo"):
            app.schedule("s", kind, {"pages": 3}, every=5)


def test_more_attempts_than_the_handler_allows_are_refused() -> None:
    app = an_app()

    @app.job("report", max_attempts=3)
    async def report(payload: dict[str, Any]) -> None: ...

    with pytest.raises(ConfigurationError, match="'report' allows a max_attempts of 3 at most"):
        app.schedule("s", report, every=5, max_attempts=4)


def test_two_schedules_have_two_names() -> None:
    app = an_app()
    app.schedule("s", "work", every=5)
    with pytest.raises(ConfigurationError, match="there are two schedules 's'"):
        app.schedule("s", "other", every=5)


def test_an_application_declares_no_more_than_a_worker_can_name() -> None:
    app = an_app()
    for number in range(MOST_DECLARED):
        app.schedule(f"s{number}", "work", every=5)
    with pytest.raises(ConfigurationError, match="declares 1,000 at most"):
        app.schedule("one-more", "work", every=5)
