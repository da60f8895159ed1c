"""Figures of the last minute (A10)."""

from __future__ import annotations

from hybrid_runner.policy.last_minute import QUIET, LastMinute, LookCounter


def test_before_the_first_look_there_is_nothing_to_say() -> None:
    assert LookCounter().seen(1000.0) == QUIET


def test_looks_of_the_last_minute_count_and_older_ones_are_forgotten() -> None:
    """A10: polls per minute, jobs found per poll, success rate, latency."""
    last_minute = LookCounter()
    last_minute.answered(100, 5.0, 1000.0)
    last_minute.answered(3, 0.002, 1061.0)
    last_minute.answered(0, 0.004, 1100.0)
    last_minute.failed(1101.0)
    assert last_minute.seen(1110.0) == LastMinute(3, 1.0, 0.6667, 3.0, 4.0)
    assert last_minute.seen(1161.0) == QUIET
    last_minute.answered(1, 0.001, 5000.0)
    assert last_minute.seen(5000.0) == LastMinute(1, 1.0, 1.0, 1.0, 1.0)


def test_while_nothing_is_answered_the_success_rate_is_none_at_all() -> None:
    last_minute = LookCounter()
    last_minute.failed(10.0)
    assert last_minute.seen(10.0) == LastMinute(1, 0.0, 0.0, 0.0, 0.0)
