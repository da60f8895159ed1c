from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.policy.look_rate import (
    FIRST_BLOCK,
    HEALTHY,
    LONGEST_BLOCK,
    LONGEST_TOGETHER,
    SAME_MOMENT,
    TOGETHER,
    DecayingRate,
    LookBudget,
    Sweeps,
    count_unexpected,
    is_brisk,
    pause_after_find,
    pause_after_none,
    pause_for_expected,
)
from hybrid_runner.settings import Settings

LONGEST = 0.005
SHARE = 0.25


@pytest.mark.parametrize(
    ("rate", "awake", "brisk"),
    [
        (0, False, False),
        (0, True, False),
        (149, False, False),
        (150, False, True),
        (150, True, True),
        (149, True, True),  # no flutter: what woke it may fall to a third
        (50, True, True),
        (50, False, False),
        (49, True, False),
    ],
)
def test_once_awake_a_third_of_the_rate_keeps_a_worker_so(
    rate: float, awake: bool, brisk: bool
) -> None:
    assert is_brisk(rate, 150, awake=awake) is brisk


@pytest.mark.parametrize(("rate", "pause"), [(0, 0), (1999, 0), (2000, 0.001), (50_000, 0.001)])
def test_only_when_jobs_come_fast_a_look_that_found_some_is_followed_by_a_pause(
    rate: float, pause: float
) -> None:
    assert pause_after_find(rate, 2000, 0.001) == pause


@pytest.mark.parametrize(
    ("rate", "pause"),
    [
        (0, LONGEST),
        (-1, LONGEST),
        (10, LONGEST),
        (50, LONGEST),
        (100, 0.0025),
        (250, 0.001),
        (500, 0.0005),
        (501, 0),  # not worth a timer
        (100_000, 0),
        (math.inf, 0),
    ],
)
def test_within_its_share_a_worker_pauses_for_a_quarter_of_the_time_to_the_next_job(
    rate: float, pause: float
) -> None:
    for spent in (0, 0.1, 0.249):
        assert pause_after_none(rate, 0.001, spent, SHARE, LONGEST) == pytest.approx(pause)


@pytest.mark.parametrize(
    ("rate", "look", "pause"),
    [
        (100_000, 0.0001, 0),  # so cheap that the pause would be shorter than a timer can be
        (100_000, 0.0004, 0.0012),
        (100_000, 0.001, 0.003),
        (250, 0.001, 0.003),
        (250, 0.0002, 0.001),  # what the rate asks for is longer
        (100_000, 0.1, 0.3),  # whatever a look costs
        (0, 0.1, 0.3),
    ],
)
def test_once_its_share_is_spent_a_worker_pauses_for_what_a_look_costs_beside_it(
    rate: float, look: float, pause: float
) -> None:
    for spent in (SHARE, 0.9):
        assert pause_after_none(rate, look, spent, SHARE, LONGEST) == pytest.approx(pause)


@pytest.mark.parametrize("look", [0.0005, 0.001, 0.0015])
def test_looks_that_find_nothing_take_their_share_of_the_time_and_no_more(look: float) -> None:
    """At a rate at which it would otherwise never pause."""
    now, looking, in_vain = 0.0, 0.0, DecayingRate(0.1)
    while now < 10:
        now, looking = now + look, looking + look
        in_vain.add(look, now)
        now += pause_after_none(10_000, look, in_vain.rate(now), SHARE, LONGEST)
    assert looking / now == pytest.approx(SHARE, rel=0.1)


def test_a_worker_whose_share_may_be_everything_never_pauses() -> None:
    assert pause_after_none(10_000, 0.1, 1.0, 1.0, LONGEST) == 0


@pytest.mark.parametrize(
    ("rate", "unexpected", "pause"),
    [
        (10_000, 0, TOGETHER),
        (600, 0, TOGETHER),
        (400, 0, 3 / 400),
        (300, 0, LONGEST_TOGETHER),
        (300, 49, LONGEST_TOGETHER),  # without the others it would sleep
        (300, 50, 0),
        (300, 300, 0),
        (50, 0, LONGEST_TOGETHER),
        (49, 0, 0),  # it is about to fall asleep
        (0, 0, 0),
    ],
)
def test_looks_are_apart_while_only_jobs_whose_time_was_known_keep_a_worker_awake(
    rate: float, unexpected: float, pause: float
) -> None:
    assert pause_for_expected(rate, unexpected, 150) == pause


@pytest.mark.parametrize(
    ("before", "count"),
    [(0, 1), (-3600, 1), (0.09, 1), (0.1, 0), (1, 0), (86400, 0)],
)
def test_a_job_that_was_put_in_well_before_it_was_due_is_not_unexpected(
    before: float, count: int
) -> None:
    assert count_unexpected([claim_put_in(before)]) == count


@pytest.mark.parametrize("size", [20, 21, 39, 40, 500])
def test_of_a_large_find_some_stand_for_all_so_that_few_times_are_compared(size: int) -> None:
    """Snoozed jobs that come due by the thousand are still expected."""
    expected, unexpected = claim_put_in(1), claim_put_in(0)
    assert count_unexpected([expected] * size) == 0
    assert count_unexpected([unexpected] * size) == size
    half = random.Random(7).sample([expected, unexpected] * size, 2 * size)
    assert count_unexpected(half) == pytest.approx(size, rel=0.4)


def claim_put_in(seconds_before: float) -> Claim:
    due = datetime(2030, 1, 1, tzinfo=UTC)
    return Claim(
        id=1,
        queue="default",
        kind="noop",
        priority=5,
        payload="{}",
        data=None,
        key=None,
        run_at=due,
        max_attempts=5,
        timeout_seconds=None,
        finish_by=None,
        traceparent=None,
        attempt=1,
        number=1,
        started_at=due,
        created_at=due - timedelta(seconds=seconds_before),
    )


def test_what_was_never_seen_has_no_rate() -> None:
    recent = DecayingRate(0.1)
    assert recent.rate(-math.inf) == recent.rate(0) == recent.rate(1e9) == 0
    recent.add(0, 5)
    assert recent.rate(5) == recent.rate(6) == 0


@pytest.mark.parametrize(
    ("later", "left"), [(0, 1.0), (0.1, 1 / math.e), (0.2, 1 / math.e**2), (1, 4.54e-5), (1e9, 0)]
)
def test_what_was_seen_counts_less_the_older_it_is(later: float, left: float) -> None:
    recent = DecayingRate(0.1)
    recent.add(20, now=7)
    assert recent.rate(7 + later) == pytest.approx(200 * left, rel=1e-3, abs=1e-9)


def test_asking_for_the_rate_changes_nothing() -> None:
    often, once = DecayingRate(0.1), DecayingRate(0.1)
    for recent in (often, once):
        recent.add(3, 0)
    for step in range(10):
        often.rate(step / 10)
    assert often.rate(1) == once.rate(1)


@pytest.mark.parametrize(("count", "every"), [(1, 0.001), (1, 0.01), (20, 0.02)])
def test_a_steady_stream_comes_to_its_own_rate(count: float, every: float) -> None:
    recent = DecayingRate(0.1)
    for step in range(2000):
        recent.add(count, step * every)
    assert recent.rate(2000 * every) == pytest.approx(count / every, rel=0.12)


def test_the_first_sweep_is_allowed_at_any_time() -> None:
    assert Sweeps(20).allowed(-1e9)


@pytest.mark.parametrize("cost", [0, 0.0003, HEALTHY])
def test_a_cheap_sweep_is_always_allowed_again(cost: float) -> None:
    sweeps = Sweeps(20)
    sweeps.took(100, 100 + cost)
    assert sweeps.allowed(100 + cost)


@pytest.mark.parametrize(
    ("cost", "factor", "blocked"),
    [(0.05, 20, 0.9), (0.05, 1, 0.045), (0.05, 0, 0), (2, 0.1, 0.1995)],
)
def test_one_that_costs_more_blocks_the_next_for_a_multiple_of_what_it_cost_beyond_health(
    cost: float, factor: float, blocked: float
) -> None:
    sweeps = Sweeps(factor)
    sweeps.took(100, 100 + cost)
    assert sweeps.last_at == 100 + cost
    assert sweeps.ready_at == pytest.approx(100 + cost + blocked)
    assert not blocked or not sweeps.allowed(100 + cost + blocked * 0.99)
    assert sweeps.allowed(100 + cost + blocked * 1.01)


@pytest.mark.parametrize("cost", [1, 60, 3600])
def test_one_that_took_long_blocks_the_next_for_a_second_and_no_longer(cost: float) -> None:
    """It may have waited for a lock, and then says nothing of what a sweep walks over."""
    sweeps = Sweeps(20)
    sweeps.took(0, cost)
    assert sweeps.ready_at == cost + FIRST_BLOCK


def test_the_pauses_grow_while_each_sweep_takes_long() -> None:
    sweeps, now, pauses = Sweeps(20), 0.0, list[float]()
    for _ in range(7):
        sweeps.took(now, now + 1)
        pauses.append(sweeps.ready_at - now - 1)
        now = sweeps.ready_at
    assert pauses == [1, 2, 4, 8, LONGEST_BLOCK, LONGEST_BLOCK, LONGEST_BLOCK]


def test_a_sweep_that_is_cheap_again_ends_the_blocking_and_the_growth() -> None:
    sweeps = Sweeps(20)
    for began in (0, 30, 60):
        sweeps.took(began, began + 1)
    sweeps.took(90, 90.001)
    assert sweeps.allowed(90.001)
    sweeps.took(91, 92)
    assert sweeps.ready_at == 92 + FIRST_BLOCK


@pytest.mark.parametrize(("usual", "blocked"), [(0, 0.9), (0.02, 0.5), (0.045, 0), (0.3, 0)])
def test_what_any_look_takes_at_that_moment_does_not_count(usual: float, blocked: float) -> None:
    sweeps = Sweeps(20)
    sweeps.took(100, 100.05, usual)
    assert sweeps.ready_at == pytest.approx(100.05 + blocked)


def test_a_job_that_is_known_to_wait_allows_one_sweep() -> None:
    sweeps = Sweeps(20)
    sweeps.took(0, 60)
    sweeps.allow()
    assert sweeps.allowed(60)
    sweeps.took(60, 120)
    assert not sweeps.allowed(120)


@dataclass
class Looked:
    """A budget, and a look of so many seconds at a time."""

    budget: LookBudget = field(default_factory=lambda: LookBudget(Settings()))
    now: float = 1000.0

    def look(self, seconds: float, *, swept: bool, payload: str = "{}") -> None:
        claims = [replace(claim_put_in(0), payload=payload)]
        self.budget.looked(claims, 10, self.now, self.now + seconds, swept=swept)
        self.now += seconds

    def may_sweep(self) -> bool:
        return self.budget.sweeps(self.now, wanted=True)


def test_on_a_slow_network_sweeps_are_no_dearer_than_looks() -> None:
    one = Looked()
    one.look(0.3, swept=False)
    for _ in range(10):
        one.look(0.303, swept=True)
        assert one.may_sweep()


def test_a_plain_look_says_for_a_moment_only_how_long_looks_take() -> None:
    one = Looked()
    one.look(0.3, swept=False)
    one.now += SAME_MOMENT
    one.look(0.303, swept=True)
    assert not one.may_sweep()


def test_payloads_take_their_time_and_no_sweep_is_blamed_for_it() -> None:
    one = Looked()
    one.look(0.12, swept=True, payload="x" * 32_000_000)
    assert one.may_sweep()
    one.look(0.12, swept=True)
    assert not one.may_sweep()


@pytest.mark.parametrize("cost", [0.01, 0.1, 1])
def test_sweeps_take_a_small_share_of_the_time_however_often_one_is_wanted(cost: float) -> None:
    now, sweeping, sweeps = 0.0, 0.0, Sweeps(20)
    while now < 1000:
        if sweeps.allowed(now):
            sweeps.took(now, now + cost)
            now, sweeping = now + cost, sweeping + cost
        now += cost / 10
    assert sweeping / now < 1 / 10
