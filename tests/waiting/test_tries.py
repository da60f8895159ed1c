"""B8, with a moved clock."""

from datetime import timedelta

import pytest

from hybrid_runner.durations import parse_duration
from hybrid_runner.model.outcomes import Snooze
from hybrid_runner.waiting.backoff import Backoff
from hybrid_runner.waiting.tries import Tries
from tests.support.looks import MovedLook


def pauses(tries: Tries, chance: float) -> list[float]:
    """The pauses until none is left."""
    job, found = MovedLook(chance), list[float]()
    while (snooze := tries.again(job)) is not None:
        assert isinstance(snooze, Snooze)
        assert snooze.delay is not None
        found.append(parse_duration(snooze.delay).total_seconds())
    return found


@pytest.mark.parametrize(
    ("chance", "seconds"),
    [
        (0.0, [1.2, 2.4, 4.8, 6.4, 6.4, 6.4]),
        (1.0, [1.8, 3.6, 7.2, 8.0, 8.0, 8.0]),
    ],
)
def test_it_is_tried_six_times_again_from_1500_ms_to_8_s(
    chance: float, seconds: list[float]
) -> None:
    """B8"""
    assert pauses(Tries(), chance) == pytest.approx(seconds)


def test_after_the_sixth_none_is_left_at_every_further_look() -> None:
    """B8"""
    tries = Tries()
    pauses(tries, 0.5)
    assert tries.again(MovedLook()) is None


def test_pauses_are_even_where_the_pace_has_no_jitter() -> None:
    """B8"""
    pace = Backoff(timedelta(seconds=1), cap="3s", factor=2, jitter=0)
    assert pauses(Tries(most=4, pace=pace), 0.7) == [1, 2, 3, 3]


def test_tries_and_having_none_left_are_counted() -> None:
    """B14"""
    job, tries = MovedLook(), Tries(most=2)
    for _ in range(3):
        tries.again(job)
    assert job.uses == ["again", "again", "used_up"]


def test_forgotten_tries_are_all_there_again() -> None:
    """B8"""
    tries = Tries(most=2)
    pauses(tries, 0.5)
    tries.forget()
    assert len(pauses(tries, 0.5)) == 2
