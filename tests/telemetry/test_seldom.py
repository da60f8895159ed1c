from __future__ import annotations

import logging

from hybrid_runner.telemetry.seldom import Seldom


def said(seldom: Seldom, text: str) -> str | None:
    """What comes out of the filter."""
    record = logging.LogRecord("talkative", logging.WARNING, __file__, 1, "%s", (text,), None)
    return record.getMessage() if seldom.filter(record) else None


def test_one_line_a_minute_with_the_number_of_those_held_back() -> None:
    now = [100.0]
    seldom = Seldom("exporting spans", lambda: now[0])
    assert said(seldom, "refused") == "exporting spans: refused"
    assert [said(seldom, "refused") for _ in range(7)] == [None] * 7
    now[0] += 59
    assert said(seldom, "refused") is None
    now[0] += 2
    assert said(seldom, "still refused") == "exporting spans: still refused (8 more lines since the last one)"
    now[0] += 61
    assert said(seldom, "refused again") == "exporting spans: refused again"


def test_a_long_line_is_shortened_to_one_that_can_be_read() -> None:
    line = said(Seldom("exporting spans"), "a stack\ntrace " * 1000)
    assert line is not None
    assert "\n" not in line
    assert len(line) < 350
