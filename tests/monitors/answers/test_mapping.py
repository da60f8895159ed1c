from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.monitors.answers import mapping as mapping_module
from hybrid_runner.monitors.answers.dependencies import Parsed
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.mapping import Equals, Mapping, compile_mapping


def read(mapping: Mapping | dict[str, Any], answer: Any) -> Parsed:
    stored = mapping.stored() if isinstance(mapping, Mapping) else mapping
    return compile_mapping(stored).read(answer)


def healths(parsed: Parsed) -> dict[str, bool]:
    return {item.name: item.healthy for item in parsed.items}


SPRING = Mapping(root="components", name="$key", healthy=Equals("status", "UP"))


def test_a_mapping_is_stored_as_sql_has_it() -> None:
    """C12"""
    mapping = Mapping(root="a.b", name="$key", healthy=Equals("status", "UP"), check_details="d")
    assert mapping.stored() == {
        "root": "a.b",
        "fields": {
            "name": "$key",
            "healthy": {"field": "status", "equals": "UP"},
            "checkDetails": "d",
        },
    }


def test_an_object_whose_keys_are_names_is_read() -> None:
    """C12"""
    answer = {"components": {"db": {"status": "up"}, "redis": {"status": "DOWN"}}}
    assert read(SPRING, answer) == Parsed(read(SPRING, answer).items, ())
    assert healths(read(SPRING, answer)) == {"db": True, "redis": False}


def test_a_list_deep_in_the_answer_is_read_with_all_its_fields() -> None:
    """C12"""
    mapping = Mapping(
        root="data.services",
        name="serviceName",
        healthy="isActive",
        type="kind",
        description="label",
        impact="severity",
        state="s.state",
        code="s.code",
        latency="metrics.latencyMs",
        skipped="off",
        contact="who",
        check_details="more",
        error="e",
        error_message="m",
        last_checked="at",
    )
    item = {
        "serviceName": "pay",
        "isActive": False,
        "kind": "rest",
        "label": "cards",
        "severity": "high",
        "s": {"state": "WARNING", "code": 3},
        "metrics": {"latencyMs": 45},
        "off": "true",
        "who": {"team": "x"},
        "more": {"a": 1},
        "e": {"b": 2},
        "m": "slow",
        "at": "2026-11-19T20:00:00Z",
    }
    (read_item,) = read(mapping, {"data": {"services": [item]}}).items
    assert read_item.last_checked is not None
    assert (read_item.name, read_item.healthy, read_item.skipped) == ("pay", True, True)
    assert (read_item.type, read_item.description, read_item.impact) == ("rest", "cards", "high")
    assert (read_item.state, read_item.code, read_item.latency_ms) == (1, 3, 45)
    assert (read_item.contact, read_item.check_details) == ({"team": "x"}, {"a": 1})
    assert (read_item.error, read_item.error_message) == ({"b": 2}, "slow")


@pytest.mark.parametrize(
    ("value", "healthy"),
    [
        *[(word, True) for word in (True, "true", "OK", "Healthy", "up", " UP ")],
        *[(word, False) for word in (False, "false", "error", "Unhealthy", "DOWN", "critical")],
    ],
)
def test_a_plain_path_takes_booleans_and_the_known_words(value: Any, healthy: bool) -> None:
    """C12; section 9."""
    parsed = read(Mapping(name="n", healthy="h"), [{"n": "a", "h": value}])
    assert healths(parsed) == {"a": healthy}


@pytest.mark.parametrize("value", ["Degraded", 1, 0, 1.5, {}, [], None, "", "okay"])
def test_anything_else_skips_the_item_and_is_a_warning(value: Any) -> None:
    """C12; section 9."""
    parsed = read(Mapping(name="n", healthy="h"), [{"n": "a", "h": value}, {"n": "b", "h": True}])
    assert healths(parsed) == {"b": True}
    (warning,) = parsed.warnings
    assert warning.startswith("healthy: an item has ")


@pytest.mark.parametrize(
    ("value", "equals", "healthy"),
    [
        ("up", "UP", True),
        ("UPS", "UP", False),
        (True, "true", True),
        (1, "1", True),
        (1.0, 1, True),
        ("1", 1, True),
        (False, False, True),
        ("false", False, True),
        ("ß", "SS", True),
    ],
)
def test_equals_compares_as_text_in_upper_or_lower_case(
    value: Any, equals: Any, healthy: bool
) -> None:
    """C12; section 9."""
    parsed = read(Mapping(name="n", healthy=Equals("h", equals)), [{"n": "a", "h": value}])
    assert healths(parsed) == {"a": healthy}


def test_reasons_are_kept_once_each_and_are_those_of_this_poll_alone() -> None:
    """C12; section 9: two polls swap warnings."""
    answer = {"components": {"a": 3, "b": 3, "c": {}, "d": {"status": []}, "e": {"status": "UP"}}}
    parsed = read(SPRING, answer)
    assert healths(parsed) == {"e": True}
    assert parsed.warnings == (
        "an item is 3, no object",
        'healthy: an item has nothing at "status"',
        'healthy: an item has a list at "status", which is compared with nothing',
    )
    assert read(SPRING, {"components": {}}).warnings == ()


def test_warnings_are_bounded() -> None:
    answer = [{"n": "a", "h": f"w{index}"} for index in range(100)]
    warnings = read(Mapping(name="n", healthy="h"), answer).warnings
    assert len(warnings) == 20
    assert warnings[-1] == "and others"


def test_a_reason_that_is_there_already_is_none_of_the_others() -> None:
    answer = [{"n": "a", "h": f"w{index}"} for index in (*range(19), 0)]
    warnings = read(Mapping(name="n", healthy="h"), answer).warnings
    assert (len(warnings), "and others" in warnings) == (19, False)


def test_skipped_is_false_where_nothing_is_said_of_it() -> None:
    mapping = Mapping(name="n", healthy="h", skipped=Equals("mode", "off"))
    answer = [
        {"n": "a", "h": False},
        {"n": "b", "h": False, "mode": "OFF"},
        {"n": "c", "h": False, "mode": []},
    ]
    parsed = read(mapping, answer)
    assert healths(parsed) == {"a": False, "b": True, "c": False}
    (warning,) = parsed.warnings
    assert warning.startswith("skipped: ")


@pytest.mark.parametrize(
    ("root", "answer", "line"),
    [
        ("a.b", {}, 'the answer has nothing at "a.b", where mapping.root says'),
        ("a.b", {"a": None}, 'the answer has nothing at "a.b"'),
        ("a.b", {"a": {"b": None}}, 'the answer has null at "a.b"'),
        ("a", {"a": "text"}, 'the answer has "text" at "a"'),
        ("", 3, "the answer has 3 as a whole"),
        ("a", {"a": [1] * 501}, "501 items, the most is 500"),
        ("a", {"a": {str(n): 1 for n in range(501)}}, "501 items, the most is 500"),
    ],
)
def test_a_root_that_leads_nowhere_fails_the_poll(root: str, answer: Any, line: str) -> None:
    """C12"""
    with pytest.raises(PollFailed) as raised:
        read(Mapping(root=root, name="n", healthy="h"), answer)
    assert raised.value.failure == "parse"
    assert line in raised.value.line


def test_names_may_be_numbers_and_nothing_else() -> None:
    answer = [{"n": 7, "h": True}, {"n": [], "h": True}, {"n": " ", "h": True}, {"h": True}]
    parsed = read(Mapping(name="n", healthy="h"), answer)
    assert healths(parsed) == {"7": True}
    assert len(parsed.warnings) == 3


def test_a_key_needs_an_object() -> None:
    parsed = read(SPRING, {"components": [{"status": "UP"}]})
    assert parsed.items == ()
    assert parsed.warnings == ("name: $key needs an object, and the items are a list",)


def test_a_mapping_is_compiled_once_and_no_more_than_so_many_are_kept() -> None:
    assert compile_mapping(SPRING.stored()) is compile_mapping(SPRING.stored())
    assert mapping_module._compiled.cache_info().maxsize == 1024  # noqa: SLF001  the bound
