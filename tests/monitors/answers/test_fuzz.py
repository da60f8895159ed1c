"""Answers that nobody would think of, by chance: the same ones at each run."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from hybrid_runner import jsontext
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitors import Item
from hybrid_runner.monitors.answers.dependencies import Parsed
from hybrid_runner.monitors.answers.expect import compile_expect
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.judging import Answer, check_expected
from hybrid_runner.monitors.answers.mapping import compile_mapping
from hybrid_runner.monitors.answers.previews import parse_answer
from tests.monitors.answers.services import NOW

STANDARD: Any = [
    {
        "name": f"dependency {number}",
        "healthy": True,
        "type": "database",
        "description": "d",
        "impact": "i",
        "health": {"state": "OK", "code": 0, "latency": 12, "skipped": False},
        "healthCode": 200,
        "latencyMs": 5,
        "contact": {"team": ["a", {"b": "c"}]},
        "checkDetails": {"pool": 1.5},
        "error": {"message": "e"},
        "errorMessage": "m",
        "lastChecked": "2026-11-19T20:00:00.000Z",
    }
    for number in range(3)
]
OTHER: Any = {"data": {"components": {"a": {"status": "UP", "ms": 3}, "b": {"status": "DOWN"}}}}
MAPPING: Any = {
    "root": "data.components",
    "fields": {
        "name": "$key",
        "healthy": {"field": "status", "equals": "UP"},
        "latency": "ms",
        "skipped": "off",
        "contact": "who",
        "error": "status",
        "description": "status.text",
    },
}
EXPECT: Any = {
    "and": [
        {"status": {"equals": 200}},
        {"or": [{"header": {"name": "a", "exists": True}}, {"latency": {"below": 100}}]},
        {"not": {"body": {"path": "data.status", "equals": "DOWN"}}},
        {"body": {"path": "status", "above": 3}},
        {"certificate": {"above": 3}},
    ]
}
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, 10**18, 1e308, -1e308, 5e-324),
    *("", " ", "\x00", "a\x00b", "\u2028", "\U0001f600" * 300, "x" * 20_000, "\x1b[31m", "$key"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-02-30T00:00:00Z", "NaN"),
    *([], {}, [[]], {"": {}}, {"\x00": "\x00"}, [None] * 600, {str(n): n for n in range(600)}),
    {"a": ["x" * 9000]},
]


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with something in it replaced, dropped, doubled or wrapped."""
    if chance.random() < 0.08:
        return chance.choice(ODD)
    if isinstance(value, dict):
        changed = {
            (
                chance.choice(["", "\x00", "name", "x" * 300]) if chance.random() < 0.02 else key
            ): mutated(part, chance)
            for key, part in value.items()
            if chance.random() > 0.03
        }
        return deep(changed, chance)
    if isinstance(value, list):
        parts = [mutated(part, chance) for part in value if chance.random() > 0.03]
        return parts * 200 if chance.random() < 0.01 else parts
    return value


def deep(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.01:
        for _ in range(chance.choice((5, 40, 240))):
            value = {"a": value} if chance.random() < 0.5 else [value]
    return value


def bytes_of(value: Any, chance: random.Random) -> bytes:
    """As JSON, and now and then with bytes changed."""
    body = json.dumps(value).encode()
    if chance.random() < 0.4:
        changed = bytearray(body)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(len(changed) + 1)
            odd = chance.choice(
                [b"\\u0000", b"\\ud800", b"NaN", b"1e999", b"\xff", b'"', b"[" * 50]
            )
            changed[at : at + chance.randrange(4)] = odd
        body = bytes(changed)
    return body


def check_storable(item: Item) -> None:
    """Postgres takes all of it: no NUL, no lone surrogate, numbers within their columns."""
    jsontext.check(orjson.dumps(asdict(item)), "item")
    assert 1 <= len(item.name) <= 200
    assert type(item.healthy) is type(item.skipped) is bool
    assert item.healthy or not item.skipped
    assert item.state in {0, 1, 2}
    assert -(2**31) <= item.code < 2**31
    assert 0 <= item.latency_ms < 2**31
    assert type(item.code) is type(item.latency_ms) is type(item.state) is int
    for text, most in [
        (item.name, 200),
        (item.type, 50),
        (item.description, 1000),
        (item.impact, 1000),
        (item.error_message, 1000),
    ]:
        assert len(text or "") <= most
        assert "\x00" not in (text or "")
    for value in (item.contact, item.check_details):
        assert value is None or isinstance(value, dict)
    for value in (item.contact, item.check_details, item.error):
        assert len(orjson.dumps(value)) <= 8192
    if item.last_checked is not None:
        assert item.last_checked.tzinfo is UTC
        assert (
            datetime(1970, 1, 1, tzinfo=UTC) <= item.last_checked < datetime(2201, 1, 1, tzinfo=UTC)
        )


def check_parsed(parsed: Parsed) -> None:
    for item in parsed.items:
        check_storable(item)
    assert len({item.name for item in parsed.items}) == len(parsed.items) <= 500
    assert len(parsed.warnings) <= 20
    for warning in parsed.warnings:
        assert warning.isprintable()
        assert len(warning) <= 300


def check_failed(failed: PollFailed) -> None:
    assert failed.failure in {"parse", "definition", "expect"}
    assert failed.line.isprintable()
    assert 1 <= len(failed.line) <= 1000


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("answer", "mapping"), [(STANDARD, None), (OTHER, MAPPING)])
def test_no_answer_is_an_exception_and_all_that_is_kept_can_be_stored(
    answer: Any, mapping: Any, seed: int
) -> None:
    """Section 7."""
    chance = random.Random(seed)
    good = 0
    for _ in range(150):
        body = bytes_of(mutated(answer, chance), chance)
        try:
            check_parsed(parse_answer(body, mapping))
            good += 1
        except PollFailed as failed:
            check_failed(failed)
    assert good


@pytest.mark.parametrize("seed", range(10))
def test_no_stored_mapping_is_an_exception(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        with contextlib.suppress(ConfigurationError):
            reading = compile_mapping(mutated(MAPPING, chance))
            try:
                check_parsed(reading.read(mutated(OTHER, chance)))
            except PollFailed as failed:
                check_failed(failed)


@pytest.mark.parametrize("seed", range(10))
def test_no_stored_expectation_is_an_exception(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        with contextlib.suppress(ConfigurationError):
            expected = compile_expect(mutated(EXPECT, chance))
            body = bytes_of(mutated(OTHER, chance), chance)
            try:
                check_expected(expected, Answer(200, CIMultiDict(), body, 5, None), NOW)
            except PollFailed as failed:
                check_failed(failed)
