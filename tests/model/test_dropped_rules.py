"""Each rule of the protocol is there for a loss that the explorer finds without it."""

from __future__ import annotations

import pytest

from hybrid_runner.policy.doorbell import Doorbell
from tests.model import broken
from tests.model.explorer import Explorer
from tests.model.worlds import Chances, Rules

DEATH = Chances(crashes=1)
LISTENER = Chances(losses=1)
LATE = Chances(late_commits=True)


@pytest.mark.parametrize(
    ("doorbell", "chances", "slots", "producers"),
    [
        (broken.WaitsForNobody, Chances(), (1, 1), 2),
        (broken.FindsAndSleeps, Chances(), (2, 2), 3),
        (broken.SleepsAfterAnyLook, LATE, (1, 1), 2),
        (broken.AsksNobody, Chances(), (1, 1), 2),
        (broken.HelpsLikeAnyRing, Chances(), (1, 1), 2),
        (broken.TrustsTheOldRow, LISTENER, (1, 1), 2),
        (broken.NeverJoins, Chances(), (1, 1), 2),
        (broken.StaysAsleepWhenDeaf, LISTENER, (1,), 1),
    ],
)
def test_without_its_rule_a_job_is_lost(
    doorbell: type[Doorbell], chances: Chances, slots: tuple[int, ...], producers: int
) -> None:
    assert Explorer(slots, producers, chances, doorbell=doorbell()).explore().bad


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(Rules(lower_before_look=False), id="the flag is lowered after the look"),
        pytest.param(Rules(open_when_falling=False), id="the bell stays muted while asleep"),
        pytest.param(
            Rules(stay_until_muting=False), id="the row of a worker that stays asleep is dropped"
        ),
        pytest.param(
            Rules(join_before_opening=False, full_renews=False),
            id="the row comes after the bell, and nobody asks again",
        ),
        pytest.param(
            Rules(mute_before_reading=False, full_renews=False),
            id="the rows are read before the mute, and nobody asks again",
        ),
    ],
)
def test_performed_otherwise_a_job_is_lost(rules: Rules) -> None:
    assert Explorer((1, 1), 2, rules=rules).explore().bad


@pytest.mark.parametrize(
    "rules",
    [
        # A full worker that reads too early sees the row when it renews its mute.
        pytest.param(Rules(join_before_opening=False), id="the row comes after the bell"),
        pytest.param(Rules(mute_before_reading=False), id="the rows are read before the mute"),
        # Whoever falls asleep opens the bell itself, and was seen if it had joined before the mute.
        pytest.param(Rules(full_renews=False), id="a full worker lets its mute run out"),
        # Another full worker takes it for a sleeper and opens the bell: more rings, no loss.
        pytest.param(Rules(leave_when_muting=False), id="a full worker keeps its row"),
    ],
)
@pytest.mark.parametrize(("slots", "producers"), [((1, 1), 2), ((1, 2), 2), ((2, 2), 3)], ids=str)
def test_these_alone_cost_time_and_no_job(
    rules: Rules, slots: tuple[int, ...], producers: int
) -> None:
    assert not Explorer(slots, producers, rules=rules).explore().bad


def test_a_worker_that_stops_has_to_say_so() -> None:
    assert Explorer((1, 1), 2, Chances(leaves=1), Rules(leaving_is_told=False)).explore().bad


def test_a_mute_that_ran_out_is_how_a_death_shows() -> None:
    only_mutes, nothing = (
        Explorer((1, 1), 2, DEATH, Rules(overdue=False), doorbell).explore()
        for doorbell in (Doorbell(), broken.IgnoresMutesThatRanOut())
    )
    assert nothing.bad > only_mutes.bad
    assert "bell run_out" in nothing.story[-1]


def test_a_death_that_leaves_no_mute_behind_shows_in_overdue_jobs_alone() -> None:
    """It died as it fell asleep, or in the midst of the statement that undid its mute: what was
    quiet is still to be found.
    """
    unseen = Explorer((1, 1), 2, DEATH, Rules(overdue=False)).explore()
    assert unseen.bad
    assert "bell open" in unseen.story[-1]
    assert not Explorer((1, 1), 2, DEATH).explore().bad
