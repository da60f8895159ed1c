from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hybrid_runner.model.monitors import Item
from hybrid_runner.monitors.answers.dependencies import parse_dependencies
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.items import read_json

INT4 = 2**31 - 1


def one(**fields: Any) -> Item:
    (item,) = parse_dependencies([{"name": "db", "healthy": True, **fields}]).items
    return item


def failure(answer: Any) -> str:
    with pytest.raises(PollFailed) as raised:
        parse_dependencies(answer)
    assert raised.value.failure == "parse"
    assert "\n" not in raised.value.line
    return raised.value.line


def test_what_is_not_said_has_its_default() -> None:
    """C8"""
    assert one() == Item(
        "db", healthy=True, type="other", code=200, latency_ms=0, state=0, last_checked=None
    )


def test_the_nested_shape_is_read() -> None:
    """C8"""
    item = one(
        type="database",
        description="orders",
        impact="critical",
        health={"state": 1, "code": 207, "latency": 12.4, "skipped": False},
        contact={"team": "db"},
        checkDetails={"pool": 3},
        error={"a": [1]},
        errorMessage="slow",
        lastChecked="2026-11-19T20:00:00.000Z",
    )
    assert item == Item(
        "db",
        healthy=True,
        type="database",
        description="orders",
        impact="critical",
        state=1,
        code=207,
        latency_ms=12,
        contact={"team": "db"},
        check_details={"pool": 3},
        error={"a": [1]},
        error_message="slow",
        last_checked=datetime(2026, 11, 19, 20, tzinfo=UTC),
    )


def test_the_flat_shape_is_read() -> None:
    """C8"""
    item = one(healthCode=503, latencyMs=40, skipped=True)
    assert (item.code, item.latency_ms, item.skipped) == (503, 40, True)


def test_a_list_under_dependencies_is_as_good_as_one_at_the_top() -> None:
    listed = [{"name": "db", "healthy": True}]
    assert parse_dependencies({"dependencies": listed}) == parse_dependencies(listed)


def test_no_dependencies_are_a_good_answer() -> None:
    assert parse_dependencies([]).items == ()


@pytest.mark.parametrize(
    ("state", "healthy", "stored"),
    [
        (0, True, 0),
        (1, True, 1),
        (2, False, 2),
        (2.0, False, 2),
        ("OK", True, 0),
        ("WARNING", True, 1),
        ("critical", False, 2),
        (None, True, 0),
        (None, False, 2),
        (7, False, 2),
        (10**400, True, 0),
        ("PURPLE", True, 0),
        (True, False, 2),
        ([], False, 2),
    ],
)
def test_a_state_is_a_number_or_a_word(state: Any, healthy: bool, stored: int) -> None:
    """Section 9: a parser that wants numbers reads each word as 0."""
    assert one(healthy=healthy, health={"state": state}).state == stored


@pytest.mark.parametrize(("healthy", "stored"), [(True, 0), (False, 2)])
def test_a_number_that_is_no_state_says_nothing(healthy: bool, stored: int) -> None:
    assert [one(healthy=healthy, state=state).state for state in (3, -1)] == [stored] * 2


def test_a_warning_is_healthy() -> None:
    """Section 9."""
    item = one(health={"state": "WARNING", "code": 2})
    assert (item.healthy, item.state, item.code) == (True, 1, 2)


@pytest.mark.parametrize("fields", [{"skipped": True}, {"health": {"skipped": True}}])
def test_what_is_skipped_is_healthy_whatever_else_is_said(fields: dict[str, Any]) -> None:
    """C8; section 9: skipped wins."""
    item = one(healthy=False, **fields)
    assert item.healthy
    assert item.skipped


@pytest.mark.parametrize("odd", ["text", 3, True, ["a"], None])
def test_contact_and_details_count_only_as_objects(odd: Any) -> None:
    """C8"""
    item = one(contact=odd, checkDetails=odd)
    assert (item.contact, item.check_details) == (None, None)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({"status": "UP"}, "the answer is no list of dependencies"),
        ({"dependencies": {"db": {}}}, "the answer is no list of dependencies"),
        ("text", 'it is "text"'),
        (None, "it is null"),
        ([3], "item 0 is 3, no object"),
        ([{"name": "a", "healthy": True}, []], "item 1 is a list, no object"),
        ([{"healthy": True}], "item 0: name is missing, no text"),
        ([{"name": 3, "healthy": True}], "item 0: name is 3, no text"),
        ([{"name": " ", "healthy": True}], 'item 0: name is "", no text'),
        ([{"name": "a"}], 'item 0 ("a"): healthy is missing, neither true nor false'),
        (
            [{"name": "a", "healthy": "yes"}],
            'item 0 ("a"): healthy is "yes", neither true nor false',
        ),
        ([{"name": "a", "healthy": 1}], 'item 0 ("a"): healthy is 1, neither true nor false'),
        ([{"name": "a", "healthy": True}] * 501, "the answer has 501 items, the most is 500"),
    ],
)
def test_one_bad_item_fails_the_poll_and_is_named(answer: Any, line: str) -> None:
    """C12"""
    assert line in failure(answer)


def test_of_two_items_of_a_name_the_last_counts_and_a_warning_says_so() -> None:
    parsed = parse_dependencies(
        [{"name": name, "healthy": name == "b"} for name in ("a", "b", "a")]
    )
    assert [(item.name, item.healthy) for item in parsed.items] == [("a", False), ("b", True)]
    assert parsed.warnings == ('"a" is there more than once: the last counts',)


def test_names_that_are_equal_when_cut_are_one() -> None:
    parsed = parse_dependencies([{"name": "a" * 300 + end, "healthy": True} for end in "xy"])
    assert [len(item.name) for item in parsed.items] == [200]


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        (float("nan"), 0),
        (10**300, INT4),
        (1e300, INT4),
        (-5, 0),
        (2.5, 2),
        (True, 0),
        ("12", 0),
        (None, 0),
    ],
)
def test_a_number_beyond_its_column_is_brought_within(number: Any, stored: int) -> None:
    """Section 7: numbers beyond int4."""
    assert one(latencyMs=number).latency_ms == stored
    assert -INT4 - 1 <= one(healthCode=number).code <= INT4


def test_texts_are_cut_and_lose_what_postgres_cannot_hold() -> None:
    """Section 7: NUL and lone surrogates."""
    item = one(description="x" * 5000, errorMessage="a\x00b", impact="\ud800", type="t" * 99)
    assert (len(item.description or ""), len(item.type)) == (1000, 50)
    assert (item.error_message, item.impact) == ("a\ufffdb", "?")
    assert one(name="a\x00").name == "a\ufffd"
    for value in ({"a": "b\x00"}, {"a\x00": "b"}):
        item = one(contact=value, checkDetails=value, error=value)
        assert item.contact == item.check_details == item.error
        assert "\\u0000" not in json.dumps(item.contact)
    assert one(description="").description is None


def test_what_is_too_deep_or_too_large_is_shortened() -> None:
    """Section 7: 2,000 levels."""
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    item = one(error=deep, contact={"a": "x" * 9000}, checkDetails=deep)
    assert json.dumps(item.error).count("a") == 30
    assert item.contact is None
    assert one(error=["x" * 100] * 100).error.startswith('["xxx')


@pytest.mark.parametrize(("levels", "kept"), [(30, 30), (31, 30), (100, 30)])
def test_of_what_is_nested_thirty_levels_are_kept(levels: int, kept: int) -> None:
    deep: Any = {}
    for _ in range(levels - 1):
        deep = {"a": deep}
    assert json.dumps(one(error=deep).error).count("{") == kept
    assert json.dumps(one(contact=deep).contact).count("{") == kept


def test_five_hundred_items_are_read_and_no_more() -> None:
    """C12"""
    items = [{"name": str(number), "healthy": True} for number in range(501)]
    assert len(parse_dependencies(items[:500]).items) == 500
    assert failure(items) == "the answer has 501 items, the most is 500"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-19T21:00:00+01:00", datetime(2026, 11, 19, 20, tzinfo=UTC)),
        ("2026-11-19T20:00:00", datetime(2026, 11, 19, 20, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("1969-12-31T23:59:59Z", None),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2200-01-01T00:00:01Z", None),
        ("yesterday", None),
        ("2" * 500, None),
        (1763582400, None),
        (None, None),
    ],
)
def test_a_time_that_cannot_be_read_is_now(text: Any, at: datetime | None) -> None:
    assert one(lastChecked=text).last_checked == at


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "the answer is empty"),
        (b" \n", "the answer is empty"),
        (b"<html>", 'it begins with "<html>"'),
        (b'[{"name": "a", "latency": NaN}]', "the answer is no JSON"),
        (b'["\\ud800"]', "the answer is no JSON"),
        (b"[" * 2000 + b"]" * 2000, "the answer is no JSON"),
        (b"\xff\xfe[\x00", "the answer is no JSON"),
        (b"[1e999]", "the answer is no JSON"),
    ],
)
def test_what_is_no_json_fails_the_poll_in_one_line(body: bytes, line: str) -> None:
    """Section 7: NaN, lone surrogates, 2,000 levels, numbers beyond any column."""
    with pytest.raises(PollFailed) as raised:
        read_json(body)
    assert raised.value.failure == "parse"
    assert line in raised.value.line
    assert raised.value.line.isprintable()


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_json(b"\xef\xbb\xbf[]") == []
