"""Files of services: what is wrong is said with its line and field."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hybrid_runner.cli.monitors import definitions
from hybrid_runner.cli.monitors.definitions import read_definitions
from hybrid_runner.errors import ConfigurationError

GOOD = {"name": "orders", "url": "https://orders.example/health"}


def test_lines_and_an_array_say_the_same() -> None:
    services = [
        GOOD | {"every": "1m", "labels": {"team": "a"}},
        {"name": "shop", "url": "http://shop", "timeout": 2.5, "active": False, "mapping": None},
    ]
    lines = "\n\n".join(map(json.dumps, services)) + "\n"
    array = json.dumps(services, indent=2)
    assert [one.fields for one in read_definitions(lines)] == [
        one.fields for one in read_definitions(array)
    ]
    assert [one.line for one in read_definitions(lines)] == [1, 3]
    assert [one.line for one in read_definitions(array)] == [2, 10]
    first, second = read_definitions(lines)
    assert (first.name, first.fields["every"]) == ("orders", timedelta(minutes=1))
    assert second.fields["timeout"] == timedelta(seconds=2.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no service in it"),
        ("[]", "there is no service in it"),
        ("{]", "line 1 is not JSON: "),
        ('{"name": "a", "url": "b"}\nnonsense', "line 2 is not JSON: Expecting value at column 1"),
        (
            '[\n{"name": "a", "url": "b"},\n{"name":]',
            "the file is not JSON: Expecting value at line 3",
        ),
        ("[1]", "line 1: a service is an object"),
        ('"name"', "line 1: a service is an object"),
        ('{"url": "b"}', "line 1: name: is missing"),
        ('{"name": "a"}', "line 1: url: is missing"),
        ('{"name": "a", "url": 7}', "line 1: url: 7 is not a text"),
        (
            '{"name": "a", "url": "b", "evry": "1m"}',
            "there is no field 'evry' (did you mean 'every'?)",
        ),
        ('{"name": "a", "url": "b", "every": "soon"}', 'line 1: every: "soon" is not a duration'),
        ('{"name": "a", "url": "b", "every": true}', "line 1: every: true is not a duration"),
        ('{"name": "a", "url": "b", "every": NaN}', "line 1 is not JSON: JSON has no NaN"),
        ('{"name": "a", "url": "b", "follow": 1.5}', "line 1: follow: 1.5 is not a whole number"),
        ('{"name": "a", "url": "b", "follow": 99999999}', "line 1: follow: "),
        ('{"name": "a", "url": "b", "labels": []}', "line 1: labels: [] is not an object"),
        ('{"name": "a", "url": "b", "mapping": "x"}', "line 1: mapping: "),
        (
            '{"name": "a", "url": "b", "active": "yes"}',
            'line 1: active: "yes" is not true or false',
        ),
        (
            '{"name": "a", "url": "b"}\n{"name": "c", "url": "d"}\n{"name": "a", "url": "e"}',
            "line 3: name: 'a' is on line 1 already",
        ),
        (
            '{"name": "a", "url": "b"}\n{"name": "c", "url": "d", "follow": %s}' % ("9" * 5000),
            "line 2 has a number with too many digits",
        ),
        ("[" * 100_000, "nested too deeply"),
        ("[[[", "is not JSON"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_definitions(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_file_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "MOST", 2)
    lines = [json.dumps(GOOD | {"name": str(each)}) for each in range(3)]
    assert len(read_definitions("\n".join(lines[:2]))) == 2
    with pytest.raises(ConfigurationError, match="there are more than 2 services"):
        read_definitions("\n".join(lines))
    monkeypatch.setattr(definitions, "LARGEST", 10)
    with pytest.raises(ConfigurationError, match="the file is larger than"):
        read_definitions("\n".join(lines))
