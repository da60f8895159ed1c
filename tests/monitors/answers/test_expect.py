from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from multidict import CIMultiDict

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.expect import (
    Expect,
    body,
    certificate,
    compile_expect,
    header,
    latency,
    status,
)
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.judging import Answer, check_expected
from tests.monitors.answers.services import NOW


def unmet(expected: Expect | dict[str, Any], **changed: Any) -> str | None:
    """What is said of an answer that is not as expected; None: it is."""
    values: dict[str, Any] = {
        "status": 200,
        "headers": CIMultiDict({"Content-Type": "application/json"}),
        "body": b'{"status": "UP", "queue": {"length": 12}, "tags": ["a", "b"], "ok": true}',
        "latency_ms": 80,
        "certificate_ends_at": NOW + timedelta(days=20, hours=3),
    }
    stored = expected.stored() if isinstance(expected, Expect) else expected
    with contextlib.suppress(PollFailed):
        check_expected(compile_expect(stored), Answer(**values | changed), NOW)
        return None
    with pytest.raises(PollFailed) as raised:
        check_expected(compile_expect(stored), Answer(**values | changed), NOW)
    assert raised.value.failure == "expect"
    return raised.value.line


@pytest.mark.parametrize(
    "expected",
    [
        status(equals=200),
        status(above=199),
        status(below=300),
        header("content-type", contains="json"),
        header("Content-Type", equals="APPLICATION/json"),
        header("X-Other", exists=False),
        body("status", equals="up"),
        body("queue.length", below=100),
        body("queue.length", above=11),
        body("ok", equals=True),
        body("tags", contains="b"),
        body("tags", exists=True),
        body(contains='"UP"'),
        latency(below=100),
        certificate(above=19),
        certificate(below=21),
        ~status(equals=500),
        status(equals=200) & body("status", equals="UP"),
        status(equals=500) | body("status", equals="UP"),
        ~(status(equals=500) | body("status", equals="DOWN")),
    ],
)
def test_an_answer_that_is_as_expected_passes(expected: Expect) -> None:
    assert unmet(expected) is None


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        (status(equals=204), "expect.status: found 200, wanted equals 204"),
        (header("X-Other", exists=True), 'expect.header: found nothing at "X-Other", wanted exi'),
        (
            status(equals=200) & body("status", equals="down"),
            'expect.and[1].body: found "UP" at "status", wanted equals "down"',
        ),
        (
            status(equals=500) | latency(below=50),
            (
                "expect.or[0].status: found 200, wanted equals 500; and expect.or[1].latency: found"
                " 80, wanted below 50"
            ),
        ),
        (~status(equals=200), "not wanted, and so it is: expect.not.status equals 200"),
        (certificate(above=30), "expect.certificate: found 20, wanted above 30"),
        (body("queue", equals="x"), 'expect.body: found an object at "queue", wanted equals "x"'),
        (body("status", above=3), 'expect.body: found "UP" at "status", wanted above 3'),
        (status(above=200), "expect.status: found 200, wanted above 200"),
        (status(below=200), "expect.status: found 200, wanted below 200"),
        (body("ok", above=0), 'expect.body: found true at "ok", wanted above 0'),
        (body("ok", below=2), 'expect.body: found true at "ok", wanted below 2'),
        (body("tags", equals='["a","b"]'), 'expect.body: found a list at "tags", wanted equals'),
        (body("tags", exists=False), 'expect.body: found a list at "tags", wanted exists false'),
        (body("no.where", below=3), 'expect.body: found nothing at "no.where", wanted below 3'),
    ],
)
def test_what_fails_is_named_with_what_was_found_instead(expected: Expect, line: str) -> None:
    assert (unmet(expected) or "").startswith(line)


def test_without_tls_there_are_no_days_left() -> None:
    assert "found nothing" in (unmet(certificate(above=1), certificate_ends_at=None) or "")


def test_nothing_is_at_a_path_of_what_is_no_json() -> None:
    assert "found nothing" in (unmet(body("a", equals=1), body=b"<html>") or "")
    assert unmet(body("a", exists=False), body=b"<html>") is None


def test_a_found_text_is_quoted_in_one_bounded_line() -> None:
    line = unmet(body("a", equals=1), body=b'{"a": "' + b"x\\n" * 5000 + b'"}') or ""
    assert line.isprintable()
    assert len(line) < 200


def test_and_joins_what_is_joined_already() -> None:
    joined = status(equals=200) & latency(below=1) & certificate(above=1)
    assert [next(iter(part)) for part in joined.stored()["and"]] == [
        "status",
        "latency",
        "certificate",
    ]


def test_a_tree_of_eight_levels_and_fifty_parts_is_accepted_and_no_more() -> None:
    tree: dict[str, Any] = {"status": {"equals": 200}}
    for _ in range(7):
        tree = {"not": tree}
    compile_expect(tree)
    with pytest.raises(ConfigurationError, match="expect is deeper than 8"):
        compile_expect({"not": tree})
    leaf = {"status": {"equals": 200}}
    compile_expect({"and": [leaf] * 49})
    with pytest.raises(ConfigurationError, match="expect has more than 50 parts"):
        compile_expect({"and": [leaf] * 50})


def test_a_tree_of_any_depth_is_refused_and_no_exception() -> None:
    tree: Any = {}
    for _ in range(2000):
        tree = {"not": tree}
    with pytest.raises(ConfigurationError):
        compile_expect(tree)
