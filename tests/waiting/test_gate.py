"""B9, with a moved clock."""

import pytest

from hybrid_runner.waiting.gate import Gate
from tests.support.looks import MovedLook


def opened(gate: Gate, seconds: list[float]) -> list[float]:
    """At which of the looks it opened."""
    job = MovedLook()
    return [second for second in seconds if gate.opens(job.at(second))]


@pytest.mark.parametrize(
    ("gate", "looks", "expected"),
    [
        (Gate(after="5s", every="15s"), [0, 4.999, 5, 6, 19.999, 20, 35, 90], [5, 20, 35, 90]),
        (Gate(after="5s", every="15s"), [2, 6, 14, 20, 21, 36], [6, 21, 36]),
        (Gate(after="5s"), [2, 4, 5, 6, 7], [5, 6, 7]),
        (Gate(after="3m"), [2, 179.9, 180, 210], [180, 210]),
        (Gate(every="15s"), [0, 1, 15, 29, 30], [0, 15, 30]),
        (Gate(after="5s", every="1s", most=2), [5, 6, 7, 8, 1800], [5, 6]),
        (Gate(), [0, 0, 1], [0, 0, 1]),
    ],
)
def test_a_gate_opens_after_a_while_and_then_at_its_interval(
    gate: Gate, looks: list[float], expected: list[float]
) -> None:
    """B9"""
    assert opened(gate, looks) == expected


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ([(3, True), (6, True), (8, False), (60, False)], [6]),
        ([(3, False), (60, False), (179, False), (180, False), (200, True)], [180, 200]),
        ([(2, True), (179, False), (181, True)], [181]),
    ],
)
def test_the_fallback_check_starts_at_a_hint_after_5_s_or_when_it_is_stuck_for_3_min(
    hints: list[tuple[float, bool]], expected: list[float]
) -> None:
    """B9"""
    job, hinted, stuck = MovedLook(), Gate(after="5s"), Gate(after="3m")
    checked = []
    for second, hint in hints:
        job.at(second)
        if (hint and hinted.opens(job)) or stuck.opens(job):
            checked.append(second)
    assert checked == expected


def test_each_opening_is_counted() -> None:
    """B14"""
    job, gate = MovedLook(), Gate(after="5s", every="15s")
    for second in (1, 5, 10, 20):
        gate.opens(job.at(second))
    assert job.uses == ["opened", "opened"]
    assert gate.opened == 2


def test_a_clock_that_is_set_back_closes_a_gate_for_one_interval() -> None:
    """B9"""
    gate = Gate(every="15s")
    assert opened(gate, [3600, 10, 24, 25]) == [3600, 25]
