"""How often something may be done that strangers can ask for."""

from __future__ import annotations

import pytest

from hybrid_runner.policy.allowance import Allowance


def test_so_many_are_allowed_at_once_and_then_so_many_a_second() -> None:
    allowance = Allowance(at_once=3, per_second=2)
    assert [allowance.take(10.0) for _ in range(4)] == [True, True, True, False]
    assert [allowance.take(10.5) for _ in range(2)] == [True, False]
    assert [allowance.take(11.75) for _ in range(3)] == [True, True, False]


def test_what_is_not_used_adds_up_to_what_is_allowed_at_once() -> None:
    allowance = Allowance(at_once=3, per_second=2)
    assert allowance.take(0.0)
    assert [allowance.take(1e6) for _ in range(4)] == [True, True, True, False]


def test_it_says_after_how_long_the_next_is_allowed() -> None:
    allowance = Allowance(at_once=1, per_second=4)
    assert allowance.wait(5.0) == 0
    assert allowance.take(5.0)
    assert allowance.wait(5.0) == pytest.approx(0.25)
    assert allowance.wait(5.125) == pytest.approx(0.125)
    assert not allowance.take(5.125)
    assert allowance.wait(5.25) == 0


def test_several_can_be_taken_at_a_time() -> None:
    allowance = Allowance(at_once=10, per_second=5)
    assert allowance.take(0.0, 8)
    assert not allowance.take(0.0, 3)
    assert allowance.take(0.25, 3)
