"""One line for what cannot be used, of which tests/monitors/refusals.py is the table."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.expect import compile_expect
from hybrid_runner.monitors.answers.headers import check_headers
from hybrid_runner.monitors.answers.mapping import compile_mapping
from hybrid_runner.monitors.answers.urls import check_url
from tests.monitors.refusals import ACCEPTED, REFUSALS

CHECKS: dict[str, Any] = {
    "mapping": compile_mapping,
    "expect": compile_expect,
    "headers": check_headers,
    "url": check_url,
}


@pytest.mark.parametrize(("column", "stored", "line"), REFUSALS)
def test_a_wrong_definition_is_refused_in_one_line(column: str, stored: Any, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        CHECKS[column](stored)
    assert str(raised.value) == line


@pytest.mark.parametrize(("column", "stored"), ACCEPTED)
def test_a_right_definition_is_accepted(column: str, stored: Any) -> None:
    CHECKS[column](stored)


@pytest.mark.parametrize("column", ["mapping", "expect", "headers"])
@pytest.mark.parametrize("odd", [None, True, 3, "x", [], [[]], {"\x00": 1}, {"\ud800": {}}])
def test_nonsense_is_refused_and_no_exception(column: str, odd: Any) -> None:
    with pytest.raises(ConfigurationError):
        CHECKS[column](odd)
