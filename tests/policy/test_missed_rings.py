"""Which jobs count as missed (A3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid_runner.policy.missed_rings import (
    MARGIN,
    RECONNECT_EVERY,
    Proof,
    Sleeper,
    is_suspect,
    may_reconnect,
    missed,
)

LONG_ASLEEP = Sleeper(asleep=100.0, rung=None)
PROVED = Proof(3, bell_open=True, alone=False, rung=False, hearing=True)


@pytest.mark.parametrize(
    ("why", "waited", "sleeper", "suspect"),
    [
        ("inserted while it slept, and nothing was heard", 10.0, LONG_ASLEEP, True),
        ("its ring may still be on its way", MARGIN - 0.01, LONG_ASLEEP, False),
        (
            "not asleep: at the start, after a reconnect, awake, full",
            10.0,
            Sleeper(None, None),
            False,
        ),
        ("it was due before this worker fell asleep", 10.0, Sleeper(10.1, None), False),
        ("a ring came when it was due", 10.0, replace(LONG_ASLEEP, rung=10.0), False),
        (
            "a ring came later: for this one, or the channel works",
            10.0,
            replace(LONG_ASLEEP, rung=0.1),
            False,
        ),
        ("the last ring was long before it", 10.0, replace(LONG_ASLEEP, rung=50.0), True),
        ("others know other kinds", 10.0, replace(LONG_ASLEEP, kinds_differ=True), False),
        ("committed late, with a run_at from before this worker slept", 1000.0, LONG_ASLEEP, False),
        ("due in the future by a clock that was set back", -5.0, LONG_ASLEEP, False),
    ],
)
def test_only_what_nothing_else_explains_is_suspect(
    why: str, waited: float, sleeper: Sleeper, suspect: bool
) -> None:
    """A3"""
    assert is_suspect(waited, sleeper) is suspect, why


@pytest.mark.parametrize(
    ("why", "proof", "count"),
    [
        ("all is certain", PROVED, 3),
        ("delayed, put back or retried: these have timers", replace(PROVED, inserted_as_due=0), 0),
        ("the ring came right after: it was committed only then", replace(PROVED, rung=True), 0),
        ("somebody mutes the bell", replace(PROVED, bell_open=False), 0),
        ("it was us: nobody else is there", replace(PROVED, bell_open=False, alone=True), 3),
        (
            "the listener was lost meanwhile: that is known by other means",
            replace(PROVED, hearing=False),
            0,
        ),
    ],
)
def test_a_suspect_counts_once_the_moment_has_passed_in_which_its_ring_may_come(
    why: str, proof: Proof, count: int
) -> None:
    """A3"""
    assert missed(proof) == count, why


def test_a_missed_ring_reconnects_the_listener_once_a_minute() -> None:
    assert may_reconnect(100.0, 100.0 - RECONNECT_EVERY)
    assert not may_reconnect(100.0, 100.1 - RECONNECT_EVERY)
