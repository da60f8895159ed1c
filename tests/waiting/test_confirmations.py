"""B7, with a moved clock."""

import pytest

from hybrid_runner.waiting.confirmations import Confirmations
from tests.support.looks import MovedLook

SEEN, CONTRARY, UNKNOWN = "seen", "contrary", "unknown"


@pytest.mark.parametrize(
    ("looks", "confirmed_at"),
    [
        ([(30, SEEN), (45, SEEN)], 45),
        ([(30, SEEN), (44.9, SEEN)], None),
        ([(30, SEEN), (40, SEEN), (45, SEEN)], 45),
        ([(30, SEEN), (40, CONTRARY), (45, SEEN), (59, SEEN)], None),
        ([(30, SEEN), (40, CONTRARY), (45, SEEN), (60, SEEN)], 60),
        ([(30, SEEN), (40, UNKNOWN), (45, SEEN)], 45),
        ([(30, SEEN), (3600, SEEN)], 3600),
        ([(30, UNKNOWN), (60, UNKNOWN), (90, SEEN)], None),
    ],
)
def test_an_outcome_counts_once_it_was_seen_twice_15_s_apart(
    looks: list[tuple[float, str]], confirmed_at: float | None
) -> None:
    """B7: the contrary forgets, a check that fails is neither."""
    job, idle = MovedLook(), Confirmations()
    found = None
    for second, said in looks:
        job.at(second)
        if said == CONTRARY:
            idle.forget()
        elif said == SEEN and idle.confirm(job):
            found = second
            break
    assert found == confirmed_at


def test_what_is_confirmed_stays_so_until_it_is_forgotten() -> None:
    """B7: readiness retries come after it, at looks that are close together."""
    job, idle = MovedLook(), Confirmations(times=2, apart="15s")
    idle.confirm(job.at(10))
    assert [idle.confirm(job.at(second)) for second in (25, 26.5, 29, 45)] == [True] * 4
    idle.forget()
    assert not idle.confirm(job.at(50))


def test_one_confirmation_is_enough_where_one_is_asked_for() -> None:
    """B7"""
    assert Confirmations(times=1).confirm(MovedLook())


def test_confirmations_taken_and_reached_are_counted_and_repeated_ones_are_not() -> None:
    """B14"""
    job, idle = MovedLook(), Confirmations()
    for second in (0, 5, 15, 16, 31):
        idle.confirm(job.at(second))
    assert job.uses == ["seen", "seen", "confirmed", "seen"]


def test_a_clock_that_is_set_back_costs_one_pause_and_not_the_time_it_was_set_back_by() -> None:
    """B7"""
    job, idle = MovedLook(), Confirmations()
    idle.confirm(job.at(3600))
    assert [idle.confirm(job.at(second)) for second in (10, 24, 25)] == [False, False, True]
