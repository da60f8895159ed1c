"""What is said in short of a service that is as it was is what would be decided at length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybrid_runner.model.monitors import Known, Polled, Same, Service, Standing
from hybrid_runner.policy.monitor_rounds import gathered
from hybrid_runner.policy.monitored_dependencies import digest_of
from hybrid_runner.policy.monitors import decide, is_well, unchanged
from tests.policy.monitored import NOW, RULES, URL, bad, good, item, seconds, service

ITEMS = (item("db", latency_ms=5), item("mail", latency_ms=0), item("new", latency_ms=3))
IDS = {"db": 11, "mail": 12}
PLACE = 0.3


def well(**changes: Any) -> Service:
    standing = Standing(
        due_at=NOW,
        url=URL,
        polled_at=NOW - seconds(30),
        ok=True,
        latency_ms=4,
        since=NOW - seconds(900),
        digest=digest_of(ITEMS),
    )
    return service(replace(standing, **changes), version=1, dependency_ids=IDS)


def known(of: Service) -> Known:
    assert of.standing is not None
    standing = of.standing
    return Known(of, 5, standing.due_at, standing.polled_at, standing.latency_ms)


@pytest.mark.parametrize("late", [0.0, 0.2, 4.9, 5.1, 400.0, -3.0])
@pytest.mark.parametrize("place", [None, 0.0, 0.3])
def test_what_is_said_in_short_is_what_is_decided(late: float, place: float | None) -> None:
    now, of = NOW + seconds(late), well()
    decided = decide(of, good(*ITEMS), None, now, RULES, chance=0.5, place=place)
    same = unchanged(known(of), good(*ITEMS), now, RULES, place)
    assert of.standing is not None
    assert same is not None
    assert decided.after == replace(
        of.standing, due_at=same.due_at, polled_at=same.polled_at, latency_ms=same.latency_ms
    )
    assert [event.kind for event in decided.events] == ["poll:complete"]
    assert (decided.dependencies, decided.gone, decided.errors) == ((), (), ())


@pytest.mark.parametrize(("late", "after"), [(0.0, 30), (4.9, 30), (14.9, 30), (15.1, 45.1)])
def test_c1_a_poll_that_is_late_does_not_move_the_next_ones(late: float, after: float) -> None:
    """For half an interval; later ones are not to come sooner."""
    moment = gathered(PLACE, NOW, seconds(30), RULES.tick)
    of = well(due_at=moment)
    same = unchanged(known(of), good(*ITEMS), moment + seconds(late), RULES, PLACE)
    assert same is not None
    assert same.due_at - moment == seconds(after)


def test_latencies_above_zero_are_told_by_the_ids_of_dependencies() -> None:
    same = unchanged(known(well()), good(*ITEMS), NOW, RULES, PLACE)
    assert same is not None
    assert (same.dependency_ids, same.latencies) == ([11], [5])
    told = good(same=Same(("db", "mail", "new"), [7, 8, 9]))
    same = unchanged(known(well()), told, NOW, RULES, PLACE)
    assert same is not None
    assert (same.dependency_ids, same.latencies) == ([11, 12], [7, 8])


@pytest.mark.parametrize(
    "polled",
    [
        bad(),
        good(item("db", healthy=False)),
        good(*ITEMS[:2]),
        good(*ITEMS, warnings=("an item is 3, no object",)),
        good(*ITEMS, certificate_ends_at=NOW),
    ],
)
def test_whatever_else_a_poll_finds_is_decided_at_length(polled: Polled) -> None:
    assert unchanged(known(well()), polled, NOW, RULES, PLACE) is None


def test_a_failed_poll_of_a_service_without_dependencies_is_decided_at_length() -> None:
    """Of its answers nothing is read: a failed poll has found as much."""
    of = well(digest=digest_of(()))
    assert unchanged(known(of), good(), NOW, RULES, PLACE) is not None
    assert unchanged(known(of), bad(), NOW, RULES, PLACE) is None


def test_a_service_that_answers_as_ever_is_well() -> None:
    assert is_well(well())
    assert is_well(well(certificate_ends_at=NOW))


@pytest.mark.parametrize(
    "changes",
    [
        {"ok": False},
        {"failures": 1},
        {"breaker": "half_open"},
        {"opened_at": NOW},
        {"is_down": True},
        {"recoveries": 1},
        {"since": None},
        {"contrary_since": NOW},
        {"told_down": True},
        {"error": "it answered 503"},
        {"failure": "http"},
        {"warnings": ("one",)},
        {"digest": None},
        {"is_unsettled": True},
        {"url": "http://elsewhere/"},
    ],
    ids=str,
)
def test_a_service_of_which_more_than_times_may_change_is_not(changes: dict[str, Any]) -> None:
    assert not is_well(well(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"standing": None},
        {"version": None},
        {"dependency_ids": None},
        {"suppressed": "maintenance"},
    ],
    ids=str,
)
def test_nor_is_one_of_which_not_all_is_known(changes: dict[str, Any]) -> None:
    assert not is_well(replace(well(), **changes))
