"""When a host's next round is, and whether a process has a network."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from hybrid_runner.policy.connectivity import Connectivity
from hybrid_runner.policy.monitor_rounds import APART, gathered, next_round, place_of
from tests.policy.monitored import NOW, seconds

TICK = seconds(3)


@pytest.mark.parametrize("due", [3, 30])
def test_what_is_due_after_a_tick_is_waited_for_exactly(due: float) -> None:
    assert next_round(0.4, NOW, seconds(due), TICK) == seconds(due)


@pytest.mark.parametrize("due", [-60, -1, 0])
def test_what_came_due_while_a_round_went_on_waits_for_the_next_tick(due: float) -> None:
    """Else each round would be followed by one more, of a service or two."""
    pause = next_round(0.4, NOW, seconds(due), TICK)
    assert pause == next_round(0.4, NOW, seconds(0.001), TICK)
    assert seconds(0.05) <= pause <= TICK


@pytest.mark.parametrize("seed", range(50))
def test_c1_within_a_tick_each_host_has_its_own_moment(seed: int) -> None:
    """The same again and again, never before something is due, and never a tick late."""
    chance = random.Random(seed)
    host, now = place_of(seed), NOW + seconds(chance.uniform(0, 1e6))
    due = seconds(chance.uniform(0.06, 2.999))
    moment = now + next_round(host, now, due, TICK)
    assert due <= moment - now <= TICK
    if moment - now > due:
        again = next_round(host, moment + seconds(0.001), seconds(0.001), TICK)
        assert again == TICK - seconds(0.001)


def test_the_rounds_of_many_hosts_do_not_line_up() -> None:
    pauses = [
        next_round(place_of(number), NOW, seconds(0.001), TICK).total_seconds()
        for number in range(300)
    ]
    for third in range(3):
        assert 95 < sum(third <= pause < third + 1 for pause in pauses) < 105


@pytest.mark.parametrize("every", [12, 15, 25, 30, 40, 45, 60, 3600])
@pytest.mark.parametrize("seed", range(10))
def test_c1_polls_of_a_host_are_gathered_at_moments_that_stay(every: float, seed: int) -> None:
    """Moved once, at most a tick to later, and to earlier by less than the rest of a part."""
    chance = random.Random(seed)
    place, tick = place_of(seed), seconds(5)
    due = NOW + seconds(chance.uniform(0, 1e6))
    moment = gathered(place, due, seconds(every), tick)
    between = seconds(every) / math.ceil(seconds(every) / APART)
    assert tick - between < moment - due <= tick
    again = gathered(place, moment + seconds(every), seconds(every), tick)
    assert abs(again - moment - seconds(every)) < seconds(0.001)


@pytest.mark.parametrize(("every", "parts"), [(30, 1), (45, 2), (60, 2), (300, 10)])
def test_polls_of_one_host_come_together_but_not_all_of_a_long_interval(
    every: int, parts: int
) -> None:
    dues = [NOW + seconds(number / 10) for number in range(10 * every)]
    moments = sorted({gathered(0.7, due, seconds(every), seconds(5)) for due in dues})
    assert [one - other for other, one in pairwise(moments)] == [seconds(every / parts)] * parts


def test_what_is_polled_with_every_tick_is_not_gathered_further() -> None:
    assert gathered(0.7, NOW, seconds(5), seconds(5)) == NOW


def test_c1_the_moments_of_many_hosts_are_spread_evenly() -> None:
    moments = [
        gathered(place_of(1000 + number), NOW, seconds(30), seconds(5)) for number in range(150)
    ]
    offsets = [(moment - NOW) % APART for moment in moments]
    for second in range(30):
        assert 3 <= sum(seconds(second) <= each < seconds(second + 1) for each in offsets) <= 7


def cut_off(*polls: tuple[str, bool, float], at: float = 10.0) -> bool:
    guard = Connectivity()
    for host, is_local, when in polls:
        guard.note(host, is_local=is_local, at=when)
    return guard.is_cut_off(at)


@pytest.mark.parametrize(
    ("polls", "is_cut_off"),
    [
        pytest.param([("a", True, 1), ("b", True, 2)], False, id="two hosts"),
        pytest.param([("a", True, 1), ("b", True, 2), ("c", True, 3)], True, id="three"),
        pytest.param([("a", True, 1), ("a", True, 2), ("a", True, 3)], False, id="one, thrice"),
        pytest.param(
            [("a", True, 1), ("b", True, 2), ("d", False, 2.5), ("c", True, 3)],
            False,
            id="another one has answered since",
        ),
        pytest.param(
            [("d", False, 0.5), ("a", True, 1), ("b", True, 2), ("c", True, 3)],
            True,
            id="another one has answered before that",
        ),
        pytest.param([("a", True, -60), ("b", True, 2), ("c", True, 3)], False, id="too long ago"),
        pytest.param(
            [("a", True, 1), ("b", True, 2), ("c", True, 3), ("a", False, 4)],
            False,
            id="the network is back",
        ),
    ],
)
def test_three_hosts_that_fail_here_and_no_answer_since_is_no_network(
    polls: list[tuple[str, bool, float]], *, is_cut_off: bool
) -> None:
    assert cut_off(*polls) is is_cut_off


def test_of_a_thousand_hosts_only_a_few_are_remembered() -> None:
    guard = Connectivity()
    for number in range(1000):
        guard.note(f"host-{number}", is_local=True, at=number / 1000)
    assert guard.is_cut_off(1.0)
    assert len(vars(guard)["_failed"]) == 3
