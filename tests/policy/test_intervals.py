from datetime import timedelta

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.policy.intervals import OUTAGE, GrowingPause
from hybrid_runner.policy.retry import RetryPolicy

DEAF = GrowingPause(timedelta(seconds=5), timedelta(seconds=30), 1.5)
HEARING = GrowingPause(timedelta(seconds=30), timedelta(seconds=60), 1.5)


def test_poll_pauses_grow_by_half_from_5_s_to_30_s() -> None:
    """A2"""
    seconds = [DEAF.after(empty).total_seconds() for empty in range(8)]
    assert seconds == pytest.approx([5, 5, 7.5, 11.25, 16.875, 25.3125, 30, 30])


def test_polls_beside_rings_grow_from_30_s_to_60_s() -> None:
    """A3"""
    assert [HEARING.after(empty).total_seconds() for empty in range(5)] == [30, 30, 45, 60, 60]


def test_a_pause_stays_at_its_cap_however_long_nothing_is_found() -> None:
    assert DEAF.after(1_000_000) == timedelta(seconds=30)


def test_an_outage_is_retried_after_1_2_4_8_and_then_every_10_s() -> None:
    """A9"""
    assert [OUTAGE.spread(failures, 0).total_seconds() for failures in range(1, 7)] == [
        1,
        2,
        4,
        8,
        10,
        10,
    ]


def test_chance_spreads_a_fleet_but_never_lengthens_the_pause() -> None:
    assert OUTAGE.spread(3, 1.0) == timedelta(seconds=3.2)


@pytest.mark.parametrize(
    ("attempt", "chance", "seconds"),
    [(1, 0, 1), (1, 1, 2), (2, 1, 4), (3, 0.5, 4.5), (9, 1, 300), (500, 1, 300), (500, 0, 1)],
)
def test_retries_back_off_with_full_jitter_between_1_s_and_5_min(
    attempt: int, chance: float, seconds: float
) -> None:
    assert RetryPolicy().delay(attempt, chance).total_seconds() == pytest.approx(seconds)


def test_a_retry_policy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="base that is not longer"):
        RetryPolicy(base="10s", cap=1)
    with pytest.raises(ConfigurationError, match="factor"):
        RetryPolicy(factor=0.5)
    with pytest.raises(ConfigurationError, match="factor between 1 and 100, not '2'"):
        RetryPolicy(factor="2")  # type: ignore[arg-type]


def test_a_retry_policy_takes_durations_as_people_write_them() -> None:
    assert RetryPolicy(base="2s", cap=10, factor=3).delay(1, 1.0) == timedelta(seconds=6)
