from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.policy.reach import APART, FEW, FURTHEST, Reach

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(milliseconds=250)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def steady(rate: float, *, inserted: float = 1, lasting: float = 30) -> Reach:
    """A worker that looked every 10 ms until now; `inserted`: jobs for each that it claimed."""
    reach, step, claimed = Reach(SHORTEST), 0.01, 0.0
    for number in range(round(lasting / step)):
        claimed += rate * step
        at = NOW - seconds(lasting - number * step)
        if int(claimed) > int(claimed - rate * step):
            reach.found(round(max(1, rate * step)), round(claimed * inserted), at)
        reach.back_to(at)
    return reach


@pytest.mark.parametrize(
    ("rate", "back"),
    [(0.1, 5), (10, 5), (190, 5), (500, 2), (1000, 1), (2000, 0.5), (10_000, 0.25), (50_000, 0.25)],
)
def test_looks_reach_back_over_few_jobs_at_any_rate(rate: float, back: float) -> None:
    """But never less far than is needed at any rate, nor so far that it is a sweep's work."""
    found = NOW - steady(rate).back_to(NOW)
    assert found.total_seconds() == pytest.approx(back, abs=0.07)


def test_jobs_that_others_claimed_count_too() -> None:
    """Ids say how many there were."""
    assert NOW - steady(10, inserted=1000).back_to(NOW) == SHORTEST


def test_jobs_that_are_put_back_again_and_again_count_each_time() -> None:
    assert NOW - steady(10_000, inserted=0).back_to(NOW) == SHORTEST


def test_whoever_has_found_nothing_yet_reaches_back_as_far_as_any() -> None:
    assert Reach(SHORTEST).back_to(NOW) == NOW - FURTHEST


def test_after_a_rush_it_reaches_back_to_its_end_and_no_further() -> None:
    reach = steady(50_000)
    for later in (1, 2, 4):
        assert reach.back_to(NOW + seconds(later)) >= NOW - 2 * APART
    assert reach.back_to(NOW + seconds(60)) == NOW + seconds(60) - FURTHEST


def test_a_find_that_is_too_much_by_itself_leaves_the_shortest_reach() -> None:
    reach = Reach(SHORTEST)
    reach.found(1, 1, NOW - seconds(3))
    reach.found(FEW + 2, FEW + 3, NOW)
    assert reach.back_to(NOW) == NOW - SHORTEST
