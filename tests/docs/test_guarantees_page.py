"""A promise names its test, and the test is there."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))
ROWS = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| |", "| trap"))
]


@cache
def written() -> set[str]:
    """The tests that there are."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {
        name
        for path in files
        for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_is_there(name: str) -> None:
    assert name in written()


def test_every_promise_and_every_trap_names_a_test() -> None:
    assert len(ROWS) > 20
    assert [row for row in ROWS if "`test_" not in row] == []
