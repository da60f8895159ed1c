from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitors import NewService
from hybrid_runner.storage import service_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.monitors.refusals import ACCEPTED, REFUSALS

ADD = (
    "INSERT INTO hybrid_monitors.services (name, url, mapping, expect, headers) VALUES ('a', $1,"
    " $2, $3, $4)"
)
IN_SQL = [
    ("every", "'2 s'", "every must be between 5s and 1h, not 00:00:02"),
    ("every", "'1 h 1 ms'", "every must be between 5s and 1h, not 01:00:00.001"),
    ("every", "NULL", "every must be between 5s and 1h, not NULL"),
    ("every", "'-1 day'", "every must be between 5s and 1h, not -1 days"),
    (
        "every",
        "'1 mon -29 days -23:59:30'",
        "every must be written without months, not 1 mon -29 days -23:59:30",
    ),
    (
        "every",
        "'1 day -23:59:30'",
        "every must be written without days, not 1 day -23:59:30",
    ),
    ("timeout", "'0'", "timeout must be between 0.1s and 60s, not 00:00:00"),
    ("timeout", "'99 ms'", "timeout must be between 0.1s and 60s, not 00:00:00.099"),
    ("timeout", "'60 s 1 ms'", "timeout must be between 0.1s and 60s, not 00:01:00.001"),
    ("timeout", "NULL", "timeout must be between 0.1s and 60s, not NULL"),
    (
        "timeout",
        "'1 day -23:59:50'",
        "timeout must be written without days, not 1 day -23:59:50",
    ),
    ("every", "'-1 day 24:00:30'", "every must be written without days, not -1 days +24:00:30"),
    (
        "every",
        "'1 year -360 days 30 s'",
        "every must be written without months, not 1 year -360 days +00:00:30",
    ),
    ("every", "'4.9 s'", "every must be between 5s and 1h, not 00:00:04.9"),
    ("timeout", "'61 s'", "timeout must be between 0.1s and 60s, not 00:01:01"),
    ("name", "''", "name must be 1 to 200 characters, not 0"),
    ("name", "NULL", "name must be 1 to 200 characters, not NULL"),
    ("name", "repeat('x', 201)", "name must be 1 to 200 characters, not 201"),
    ("name", r"E'a\nb'", "name has a control character in it: leave it out"),
    ("name", r"E'a\u202eb'", "name has a control character in it: leave it out"),
    ("name", r"E'a\u200eb'", "name has a control character in it: leave it out"),
    ("name", r"E'a\u0085b'", "name has a control character in it: leave it out"),
    ("name", "'a '", "name begins or ends with a blank: leave it out"),
    ("name", "' a'", "name begins or ends with a blank: leave it out"),
    ("url", "NULL", "url must begin with http:// or https:// and name a host"),
    (
        "format",
        "'prometheus'",
        "format must be dependencies, mapping or status, not prometheus",
    ),
    ("format", "'mapping'", "mapping is missing: it explains what the format mapping is"),
    ("follow", "6", "follow must be 0 to 5, not 6"),
    ("follow", "-1", "follow must be 0 to 5, not -1"),
    ("fail_after", "101", "fail_after must be 1 to 100, not 101"),
    ("fail_after", "NULL", "fail_after must be 1 to 100, not NULL"),
    ("recover_after", "0", "recover_after must be 1 to 100, not 0"),
    ("recover_after", "NULL", "recover_after must be 1 to 100, not NULL"),
    ("created_at", "NULL", "created_at must be a time: leave it out"),
    ("created_at", "'infinity'", "created_at must be a time: leave it out"),
    ("expect", "'3'", "expect must be an object"),
    ("headers", "'3'", "headers must be an object"),
    ("quiet_until", "'-infinity'", "quiet_until must be between 1970 and 9999, not -infinity"),
    ("follow", "NULL", "follow must be 0 to 5, not NULL"),
    ("fail_after", "0", "fail_after must be 1 to 100, not 0"),
    ("recover_after", "101", "recover_after must be 1 to 100, not 101"),
    ("labels", "'[]'", "labels must be an object"),
    ("labels", "NULL", "labels must be an object"),
    (
        "labels",
        "jsonb_build_object('a', repeat('x', 8192))",
        "labels has more than 8192 bytes of JSON: make it shorter",
    ),
    (
        "labels",
        "jsonb_build_object('a', '1e131071'::numeric)",
        "labels has more than 8192 bytes of JSON: make it shorter",
    ),
    (
        "labels",
        "jsonb_build_object('a', (repeat('[', 700) || repeat(']', 700))::jsonb)",
        "labels.a must be a text, a number or a boolean",
    ),
    ("labels", """'{"b": 1e20, "a": "x"}'""", "labels.b must be between -1e15 and 1e15"),
    ("active", "NULL", "active must be true or false, not NULL"),
    ("quiet_until", "'infinity'", "quiet_until must be between 1970 and 9999, not infinity"),
    (
        "depends_on",
        "99",
        "depends_on must be the id of another service, and there is none with 99",
    ),
]


URLS = [(stored, line) for column, stored, line in REFUSALS if column == "url"]


@pytest.mark.parametrize(("url", "line"), URLS)
async def test_a_wrong_url_is_refused_in_the_line_of_python(
    undone: Connection, url: str, line: str
) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await undone.execute(ADD, url, None, None, None)
    assert str(raised.value) == f"services.{line}"


@pytest.mark.parametrize("url", [stored for column, stored in ACCEPTED if column == "url"])
async def test_a_right_url_is_accepted(undone: Connection, url: str) -> None:
    """As by Python."""
    await undone.execute(ADD, url, None, None, None)


@pytest.mark.parametrize("column", ["mapping", "expect", "headers"])
@pytest.mark.parametrize(
    ("stored", "line"),
    [
        ([], "must be an object"),
        ({"a": "x" * 8200}, "has more than 8192 bytes of JSON: make it shorter"),
    ],
)
async def test_a_definition_is_refused_by_type_and_size_alone(
    undone: Connection, column: str, stored: Any, line: str
) -> None:
    names = ("mapping", "expect", "headers")
    given = [json.dumps(stored) if name == column else None for name in names]
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        async with undone.transaction():
            await undone.execute(ADD, "http://a", *given)
    assert str(raised.value) == f"services.{column} {line}"
    await undone.execute(ADD, "http://a", *(value and '{"nonsense": 1}' for value in given))


async def test_a_column_that_is_at_its_bound_is_accepted(undone: Connection) -> None:
    """As docs/monitors.md has them; names and labels as long as they may be."""
    await undone.execute(
        "INSERT INTO hybrid_monitors.services (name, url, every, timeout, follow, fail_after,"
        " recover_after, labels, quiet_until) VALUES"
        " (repeat('x', 200), 'http://a', '5 s', '100 ms', 0, 1, 1, '{\"a\": 1e15}', '1970-01-01Z'),"
        " ('x', 'http://a', '1 h', '60 s', 5, 100, 100, jsonb_build_object('a', repeat('x', 200)),"
        " '9998-12-31')"
    )


async def test_what_was_right_when_it_was_stored_may_stay_when_other_columns_change(
    undone: Connection,
) -> None:
    """Its parent was removed since: whoever pauses or renames it is told nothing of that."""
    await undone.execute("ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service")
    await undone.execute(
        "INSERT INTO hybrid_monitors.services (name, url, format, depends_on)"
        " VALUES ('a', 'http://a', 'status', 99)"
    )
    await undone.execute("ALTER TABLE hybrid_monitors.services ENABLE TRIGGER check_service")
    await undone.execute("UPDATE hybrid_monitors.services SET name = 'b', active = false")


async def test_a_hundred_services_may_be_above_another_one_and_no_more(undone: Connection) -> None:
    """Each of them is looked at when a parent is given."""
    add = (
        "INSERT INTO hybrid_monitors.services (name, url, depends_on) VALUES ($1, 'http://a',"
        " (SELECT max(id) FROM hybrid_monitors.services))"
    )
    for number in range(102):
        await undone.execute(add, str(number))
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await undone.execute(add, "103")
    assert str(raised.value) == (
        "services.depends_on has more than 100 services above it: make the chain shorter"
    )


@pytest.mark.parametrize(("column", "value", "line"), IN_SQL)
@pytest.mark.parametrize("style", ["iso_8601", "postgres"])
async def test_a_wrong_column_is_refused_by_insert_and_by_update_in_a_line_that_names_it(
    undone: Connection, column: str, value: str, line: str, style: str
) -> None:
    await undone.execute(f"SET LOCAL intervalstyle = '{style}'")
    columns = {"name": "'a'", "url": "'http://a'"} | {column: value}
    inserted = (
        f"INSERT INTO hybrid_monitors.services ({', '.join(columns)}) VALUES"
        f" ({', '.join(columns.values())})"
    )
    added = "INSERT INTO hybrid_monitors.services (name, url) VALUES ('b', 'http://a')"
    updated = f"UPDATE hybrid_monitors.services SET {column} = {value}"
    await undone.execute(added)
    for statement in (inserted, updated):
        with pytest.raises(asyncpg.PostgresError) as raised:
            async with undone.transaction():
                await undone.execute(statement)
        assert str(raised.value) == f"services.{line}"
        assert raised.value.sqlstate == "23514"


async def test_a_service_depends_on_no_circle(undone: Connection) -> None:
    for name in "abc":
        await undone.execute(
            "INSERT INTO hybrid_monitors.services (name, url, depends_on) VALUES ($1, 'http://a',"
            " (SELECT max(id) FROM hybrid_monitors.services))",
            name,
        )
    by_name = "(SELECT id FROM hybrid_monitors.services WHERE name = 'c')"
    for name, line in (("c", "must be another service than itself"), ("a", "makes a circle: ")):
        with pytest.raises(asyncpg.CheckViolationError) as raised:
            async with undone.transaction():
                await undone.execute(
                    f"UPDATE hybrid_monitors.services SET depends_on = {by_name} WHERE name = $1",
                    name,
                )
        assert str(raised.value).startswith(f"services.depends_on {line}")


async def test_one_statement_makes_no_circle_either(undone: Connection) -> None:
    await undone.execute(
        "INSERT INTO hybrid_monitors.services (name, url) VALUES ('a', 'http://a'),"
        " ('b', 'http://a')"
    )
    with pytest.raises(asyncpg.CheckViolationError, match="circle"):
        await undone.execute(
            "UPDATE hybrid_monitors.services AS s SET depends_on = o.id"
            " FROM hybrid_monitors.services AS o WHERE o.name <> s.name"
        )


async def pairs(on: Connection, statement: str) -> dict[str, str]:
    return {row[0]: row[1] for row in await on.fetch(statement)}


async def test_a_mapping_alone_says_the_format(undone: Connection) -> None:
    mapping = {"fields": {"name": "a", "healthy": "b"}}
    await service_calls.add_service(undone, NewService("a", "http://a", mapping=mapping))
    await service_calls.add_service(undone, NewService("b", "http://a"))
    formats = "SELECT name, format FROM hybrid_monitors.services"
    assert await pairs(undone, formats) == {"a": "mapping", "b": "dependencies"}
    await service_calls.update_service(undone, "a", {"mapping": None})
    await service_calls.update_service(undone, "b", {"mapping": mapping})
    assert await pairs(undone, formats) == {"a": "dependencies", "b": "mapping"}
    with pytest.raises(ConfigurationError, match="mapping is not used with the format status"):
        await service_calls.update_service(undone, "b", {"format": "status"})


@pytest.mark.parametrize(
    ("window", "line"),
    [
        ("NULL, NULL, now(), now() + interval '1 h', NULL", "service_id or label must be given"),
        ("1, '{}', now(), now() + interval '1 h', NULL", "service_id or label must be given"),
        ("1, NULL, now(), now(), NULL", "ends must be later than begins"),
        ("1, NULL, now(), NULL, NULL", "ends must be later than begins, not NULL"),
        ("1, NULL, '-infinity', now(), NULL", "begins must be between 1970 and 9999"),
        ("1, NULL, 'infinity', 'infinity', NULL", "begins must be between 1970 and 9999"),
        ("1, NULL, NULL, now(), NULL", "begins must be between 1970 and 9999, not NULL"),
        (
            "1, NULL, now(), now() + interval '1 h', '366 days 1 s'",
            "every must be between 1m and 366 days",
        ),
        ("1, NULL, now(), 'infinity', NULL", "ends must be later than begins"),
        ("NULL, '[1]', now(), now() + interval '1 h', NULL", "label must be an object"),
        (
            (
                "NULL, (SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, 150) AS n),"
                " now(), now() + interval '1 h', NULL"
            ),
            "label has more than 1024 bytes of JSON: make it shorter",
        ),
        (
            "NULL, '{\"team\": [1]}', now(), now() + interval '1 h', NULL",
            "label.team must be a text, a number or a boolean",
        ),
        ("1, NULL, now(), now() + interval '1 h', '1 s'", "every must be between 1m and 366 days"),
        ("1, NULL, now(), now() + interval '1 h', '1 h'", "every must be longer than from begins"),
        ("1, NULL, now(), now() + interval '1 h', '1 mon'", "every must be written without months"),
    ],
)
async def test_a_wrong_window_is_refused_in_one_line(
    undone: Connection, window: str, line: str
) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await undone.execute(
            "INSERT INTO hybrid_monitors.windows (service_id, label, begins, ends, every)"
            f" VALUES ({window})"
        )
    assert str(raised.value).startswith(f"windows.{line}")
    assert "\n" not in str(raised.value)


async def test_there_are_a_thousand_windows_and_no_more(undone: Connection) -> None:
    """Each round looks through all of them."""
    many = (
        "INSERT INTO hybrid_monitors.windows (label, begins, ends) SELECT '{}', now(),"
        " now() + interval '1 h' FROM generate_series(1, $1)"
    )
    with pytest.raises(asyncpg.CheckViolationError, match=r"windows\.id: there are 1000 already"):
        async with undone.transaction():
            await undone.execute(many, 1001)
    await undone.execute(many, 1000)
    await undone.execute("UPDATE hybrid_monitors.windows SET reason = repeat('x', 1000)")
    with pytest.raises(asyncpg.CheckViolationError, match=r"windows\.reason has more than 1000"):
        await undone.execute("UPDATE hybrid_monitors.windows SET reason = repeat('x', 1001)")


@pytest.mark.parametrize(
    ("values", "column"), [("'pg', ''", "canonical_name"), ("'', 'pg'", "alias")]
)
async def test_a_wrong_alias_is_refused_in_one_line(
    undone: Connection, values: str, column: str
) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await undone.execute(f"INSERT INTO hybrid_monitors.aliases VALUES ({values})")
    assert str(raised.value) == f"aliases.{column} must be 1 to 200 characters, not 0"


async def test_python_is_told_in_the_same_line(undone: Connection) -> None:
    for service, line in (
        (
            NewService("a", "http://a", every=timedelta(seconds=2)),
            "services.every must be between 5s and 1h, not 00:00:02",
        ),
        (
            NewService("a", "http://a", depends_on="b"),
            "services.depends_on must be another service, and there is none called 'b'",
        ),
    ):
        with pytest.raises(ConfigurationError) as raised:
            async with undone.transaction():
                await service_calls.add_service(undone, service)
        assert str(raised.value) == line
    await service_calls.add_service(undone, NewService("a", "http://a"))
    with pytest.raises(ConfigurationError, match="another service is called 'a'"):
        async with undone.transaction():
            await service_calls.add_service(undone, NewService("a", "http://b"))
    with pytest.raises(ConfigurationError, match="there is no service called 'b'"):
        await service_calls.pause_service(undone, "b")
    with pytest.raises(ConfigurationError, match="a service has no host"):
        await service_calls.update_service(undone, "a", {"host": "b"})


async def test_python_changes_what_it_names_and_nothing_else(undone: Connection) -> None:
    await service_calls.add_service(undone, NewService("parent", "http://p"))
    given = NewService(
        name="a",
        url="http://A.b:81/x",
        every=timedelta(seconds=7),
        timeout=timedelta(milliseconds=1500),
        mapping={"fields": {"name": "a", "healthy": "b"}},
        expect={"status": {"equals": 200}},
        headers={"X-A": "{token}"},
        follow=2,
        fail_after=3,
        recover_after=4,
        depends_on="parent",
        labels={"team": "billing"},
        active=False,
    )
    number = await service_calls.add_service(undone, given)
    until = datetime(2030, 1, 1, tzinfo=UTC)
    whole = "SELECT * FROM hybrid_monitors.services WHERE name = $1"
    before = await undone.fetchrow(whole, "a")
    assert before is not None
    assert (before["id"], before["host"]) == (number, "a.b")
    assert before["timeout"] == timedelta(milliseconds=1500)
    assert json.loads(before["headers"]) == {"X-A": "{token}"}
    changes = {"quiet_until": until, "expect": None, "depends_on": None, "name": "b"}
    assert await service_calls.update_service(undone, "a", changes) == number
    after = await undone.fetchrow(whole, "b")
    assert dict(after or {}) == dict(before) | changes
    assert await service_calls.resume_service(undone, "b") == number
    assert await service_calls.remove_service(undone, "b") == number
    assert await undone.fetchrow(whole, "b") is None
