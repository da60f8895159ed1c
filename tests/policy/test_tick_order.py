"""When a worker looks for due schedules: laws for any fleet, any tick and any answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from hybrid_runner.policy.tick_order import (
    IN_VAIN,
    OVERDUE,
    STAGGER,
    TickTimer,
    looks,
    pause,
    place,
)


def any_case(law: Callable[[Random], None]) -> Callable[[], None]:
    """Hold the law against many cases."""

    def test() -> None:
        for seed in range(200):
            law(Random(seed))

    test.__doc__ = law.__doc__
    return test


def fleet_of(chance: Random) -> set[str]:
    return {f"{chance.getrandbits(48):x}" for _ in range(chance.randint(1, 40))}


def seconds_of(chance: Random) -> float:
    """To a tick, before it and after."""
    return (
        chance.choice((-1, 1))
        * chance.choice((0.0, 1e-6, 0.01, 0.04, 1.5, 30.0, 1e6))
        * (1 - chance.random())
    )


@any_case
def test_all_workers_know_the_same_order_and_each_place_is_taken_once(chance: Random) -> None:
    fleet = fleet_of(chance)
    assert sorted(place(worker, fleet) for worker in fleet) == [*range(len(fleet))]
    assert all(place(worker, fleet) == place(worker, fleet - {worker}) for worker in fleet)


@any_case
def test_whoever_dies_moves_nobody_to_a_later_place(chance: Random) -> None:
    fleet = fleet_of(chance)
    dead = chance.choice(sorted(fleet))
    for worker in fleet - {dead}:
        before, after = place(worker, fleet), place(worker, fleet - {dead})
        assert after in (before, before - 1)


@any_case
def test_a_tick_to_come_is_looked_for_by_three_one_of_them_at_its_time(chance: Random) -> None:
    fleet, until = fleet_of(chance), 1e-9 + abs(seconds_of(chance))
    pauses = [pause(until, place(worker, fleet)) for worker in fleet]
    looking = sorted(each for each in pauses if each is not None)
    assert looking == [until + after for after in STAGGER[: len(fleet)]]


@any_case
def test_a_tick_that_is_late_is_looked_for_by_whoever_learns_of_it(chance: Random) -> None:
    """The guarantee: whatever became of those who look first."""
    until, position = -abs(seconds_of(chance)), chance.randint(0, 60)
    seconds = pause(until, position)
    assert seconds is not None
    assert 0 <= seconds <= OVERDUE
    assert seconds == 0 or until > -OVERDUE


@any_case
def test_nobody_looks_before_the_tick_nor_without_one(chance: Random) -> None:
    until, position = seconds_of(chance), chance.randint(0, 60)
    seconds = pause(until, position)
    assert seconds is None or seconds >= max(0.0, until)
    assert pause(None, position) is None


def test_as_many_look_as_have_a_time() -> None:
    assert [looks(position) for position in range(5)] == [True, True, True, False, False]


# --- the timer of one worker


@any_case
def test_an_older_answer_that_comes_later_is_left_aside(chance: Random) -> None:
    timer, position = TickTimer(), chance.randint(0, 60)
    timer.learn(seconds_of(chance), position, asked_at=10.0)
    at = timer.looks_at
    timer.learn(seconds_of(chance), position, asked_at=9.0)
    assert timer.looks_at == at


@any_case
def test_the_newest_answer_counts_also_if_it_says_that_there_is_no_tick(chance: Random) -> None:
    timer, position = TickTimer(), chance.randint(0, 60)
    timer.learn(seconds_of(chance), position, asked_at=1.0)
    until = chance.choice((None, seconds_of(chance)))
    timer.learn(until, position, asked_at=2.0)
    seconds = pause(until, position)
    assert timer.looks_at == (None if seconds is None else 2.0 + seconds)


@any_case
def test_while_looks_fire_and_more_is_due_the_next_comes_at_once(chance: Random) -> None:
    """Also of one who only helps out: thousands may be due."""
    timer, position = TickTimer(), chance.randint(0, 60)
    for look in range(5):
        timer.looked(-abs(seconds_of(chance)), position, look, look + 0.5, has_fired=True)
        assert timer.looks_at == look + 0.5


@any_case
def test_what_somebody_else_holds_is_looked_for_a_few_times_and_then_by_heartbeats(
    chance: Random,
) -> None:
    timer, position = TickTimer(), chance.randint(0, 60)
    until = -abs(seconds_of(chance))
    for pause_after in IN_VAIN:
        timer.looked(until, position, 0.0, 100.0, has_fired=False)
        assert timer.looks_at == 100.0 + pause_after
    timer.looked(until, position, 0.0, 100.0, has_fired=False)
    assert timer.looks_at is None
    timer.learn(until, position, asked_at=110.0)
    assert timer.looks_at is not None


@any_case
def test_looks_never_follow_each_other_at_once_unless_one_has_fired(chance: Random) -> None:
    """Nothing spins, whatever Postgres answers."""
    timer, now, in_vain = TickTimer(), 0.0, 0
    for _ in range(50):
        now += 1.0
        until, has_fired = chance.choice((None, seconds_of(chance))), chance.random() < 0.3
        timer.looked(until, chance.randint(0, 60), now, now, has_fired=has_fired)
        is_due = until is not None and until <= 0
        assert timer.looks_at is None or timer.looks_at > now or (is_due and has_fired)
        in_vain = in_vain + 1 if is_due and not has_fired else 0
        assert timer.looks_at is None or in_vain <= len(IN_VAIN)


@any_case
def test_who_looked_too_early_looks_again_in_time(chance: Random) -> None:
    """Its clock ran ahead of the server's, or the server's was set back."""
    timer, until = TickTimer(), 1e-9 + abs(seconds_of(chance))
    timer.looked(until, 0, 1.0, 2.0, has_fired=chance.random() < 0.5)
    assert timer.looks_at is not None
    assert math.isclose(timer.looks_at, 1.0 + until)


def test_while_somebody_holds_what_is_due_the_next_one_to_come_is_looked_for() -> None:
    timer = TickTimer()
    for pause_after in (*IN_VAIN, 7.0):
        timer.looked(-1.0, 0, 100.0, 100.0, has_fired=False, to_come=7.0)
        assert timer.looks_at == 100.0 + pause_after
    timer.looked(-1.0, 0, 100.0, 100.0, has_fired=False, to_come=None)
    assert timer.looks_at is None
