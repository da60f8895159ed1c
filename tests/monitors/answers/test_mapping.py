from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from hybrid_runner.errors import ConfigurationError
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


class TestJSONPath:
    def test_the_nodes_that_it_finds_are_the_items(self) -> None:
        mapping = Mapping(root="$.components[*]", name="$key", healthy="$.state.up")
        answer = {"components": {"db": {"state": {"up": True}}}}
        assert healths(read(mapping, answer)) == {"db": True}

    def test_a_path_to_one_place_leads_to_the_list_or_object(self) -> None:
        mapping = Mapping(root="$['a.b']", name="$key", healthy="$.up")
        assert healths(read(mapping, {"a.b": {"db": {"up": True}}})) == {"db": True}
        assert healths(read(Mapping(root="$.x", name="n", healthy="h"), {"x": []})) == {}

    def test_filters_choose_items(self) -> None:
        mapping = Mapping(root="$[?@.critical == true]", name="n", healthy="h")
        answer = [{"n": "a", "h": True, "critical": True}, {"n": "b", "h": True}]
        assert healths(read(mapping, answer)) == {"a": True}

    @pytest.mark.parametrize(("both", "names"), [("&&", {"a"}), ("||", {"a", "b"})])
    def test_a_filter_may_ask_for_several_places(self, both: str, names: set[str]) -> None:
        mapping = Mapping(root=f"$[?@.critical {both} @.n]", name="n", healthy="h")
        answer = [{"n": "a", "h": True, "critical": True}, {"n": "b", "h": True}]
        assert {*healths(read(mapping, answer))} == names

    def test_a_path_that_is_wrong_is_refused_in_one_line(self) -> None:
        with pytest.raises(ConfigurationError, match=r"^mapping\.root is no JSONPath: .+$"):
            Mapping(root="$.a[", name="n", healthy="h")

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            ("$[?match(@.a, '(a+)+$')]", "function 'match' is not defined"),
            ("$[?search(@.a, '(a+)+$')]", "function 'search' is not defined"),
            ("$[?@.a =~ /(a+)+$/]", "is no JSONPath"),
            ("$[?@..a]", "a filter may look at one place only"),
            ("$..[?!@.*]", "a filter may look at one place only"),
            ("$[?@.a == 1 && @[?@.b]]", "a filter may look at one place only"),
            ("$[?@.a == $.b]", "a filter may compare a place with a literal only"),
            ("$.a | $.b", "is no JSONPath"),
        ],
    )
    def test_what_could_run_for_ever_is_refused(self, path: str, line: str) -> None:
        with pytest.raises(ConfigurationError, match=re.escape(line)):
            Mapping(root=path, name="n", healthy="h")

    @pytest.mark.parametrize(
        "path",
        [
            "$..*..*..*..*",
            "$..*..*..*..nothing",
            "$" + "[*,*]" * 30,
            "$" + "[::1,::1]" * 20,
            "$[" + ",".join("0" * 80) + "][?@.a]",
        ],
    )
    def test_a_path_that_looks_at_too_much_is_stopped(self, path: str) -> None:
        answer: Any = [[1] * 2000]
        for _ in range(40):
            answer = [answer]
        if "?" in path:
            answer = [[1] * 2000]
        with pytest.raises(PollFailed) as raised:
            read(Mapping(root=path, name="n", healthy="h"), answer)
        if path.endswith(("nothing", "?@.a]")):
            assert raised.value.failure == "definition"
        stopped = ("looks at more than 50,000 values", "501 items, the most is 500")
        assert raised.value.line.endswith(stopped) or stopped[0] in raised.value.line

    def test_an_answer_as_deep_as_can_be_read_is_no_exception(self) -> None:
        answer: Any = []
        for _ in range(1000):
            answer = [answer]
        with pytest.raises(PollFailed) as raised:
            read(Mapping(root="$..x", name="n", healthy="h"), answer)
        assert raised.value.failure == "parse"

    def test_where_it_is_not_installed_the_mapping_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "jsonpath", None)
        stored = {"root": "$.not[0].compiled", "fields": {"name": "n", "healthy": "h"}}
        with pytest.raises(ConfigurationError, match=r"pip install 'hybrid-runner\[jsonpath\]'"):
            compile_mapping(stored)
