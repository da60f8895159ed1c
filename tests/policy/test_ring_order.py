from __future__ import annotations

from collections import Counter

import pytest

from hybrid_runner.policy.ring_order import AT_ONCE, EVERYBODY, Part, part, place

RINGER = 4711
FLEET = [f"worker-{number}" for number in range(12)]
NAMES = {
    "numbered": [f"worker-{number:02}" for number in range(10)],
    "alike": [f"app-7f9c4d-{'abcdefghij'[number]}" for number in range(10)],
    "odd": [f"{number * 2_654_435_761 % 2**32:x}@host" for number in range(10)],
}


def parts(ringer: int, members: list[str]) -> Counter[Part]:
    """How many of the fleet do what for this ring."""
    return Counter(part(place(ringer, member, members), len(members)) for member in members)


def test_everybody_computes_the_same_order_whatever_order_they_know_the_others_in() -> None:
    places = {member: place(RINGER, member, FLEET) for member in FLEET}
    assert sorted(places.values()) == list(range(len(FLEET)))
    assert places == {
        member: place(RINGER, member, sorted(FLEET, reverse=True)) for member in FLEET
    }
    assert places == {member: place(RINGER, member, set(FLEET)) for member in FLEET}


def test_who_joins_or_leaves_moves_the_others_by_one_place_at_most() -> None:
    before = {member: place(RINGER, member, FLEET) for member in FLEET}
    moved = {place(RINGER, member, [*FLEET, "newcomer"]) - before[member] for member in FLEET}
    assert moved <= {0, 1}


@pytest.mark.parametrize("size", range(1, EVERYBODY + 1))
def test_in_a_small_fleet_everybody_looks(size: int) -> None:
    assert parts(RINGER, FLEET[:size]) == {Part.LOOK: size}


@pytest.mark.parametrize("size", range(EVERYBODY + 1, len(FLEET) + 1))
def test_in_a_larger_one_two_look_one_looks_later_and_the_rest_sleep_on(size: int) -> None:
    assert AT_ONCE == 2
    for ringer in range(100):
        assert parts(ringer, FLEET[:size]) == {
            Part.LOOK: 2,
            Part.LOOK_LATER: 1,
            Part.NOTHING: size - 3,
        }


def test_a_newcomer_whom_nobody_knows_yet_ranks_itself() -> None:
    position = place(RINGER, "newcomer", FLEET)
    assert position == place(RINGER, "newcomer", [*FLEET, "newcomer"])
    # The others go by the order without it, so that as many as ever look, and it may look beside
    # them.
    assert parts(RINGER, FLEET)[Part.LOOK] == AT_ONCE


def test_one_who_knows_nobody_is_first() -> None:
    assert place(RINGER, "alone", []) == 0
    assert part(0, 0) is Part.LOOK


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize(
    "ringers",
    [range(1_000, 2_000), range(100_000, 200_000, 100)],
    ids=["one after another", "far apart"],
)
def test_over_many_ringers_the_work_spreads_evenly(names: list[str], ringers: range) -> None:
    firsts = Counter(
        next(name for name in names if place(ringer, name, names) == 0) for ringer in ringers
    )
    fair = len(ringers) / len(names)
    assert all(0.7 * fair < firsts[name] < 1.3 * fair for name in names), firsts
