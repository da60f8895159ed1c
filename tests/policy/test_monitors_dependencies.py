"""What an answer changes of the dependencies of its service."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from hybrid_runner.model.monitors import Item
from hybrid_runner.policy.monitored_dependencies import digest_of
from tests.policy.monitored import EVERY, NOW, World, bad, good, item, kinds, service


def test_c8_what_is_skipped_counts_as_healthy() -> None:
    world = World()
    world.poll(good(item(healthy=False, skipped=True)))
    assert world.stored["db"].item.healthy
    world.poll(good(item(healthy=True)))
    world.poll(good(item(healthy=False, skipped=True, error={"why": "off"})))
    assert not world.told("status:change")
    assert not world.errors


def test_c8_contact_follows_the_latest_answer() -> None:
    world = World()
    world.poll(good(item(contact={"team": "a"})))
    world.poll(good(item(contact={"team": "b"})))
    assert world.stored["db"].item.contact == {"team": "b"}
    world.poll(good(item()))
    assert world.stored["db"].item.contact is None


def test_c9_a_new_dependency_is_no_change_of_status() -> None:
    world = World()
    world.poll(good(item(healthy=False)))
    assert not world.told("status:change")
    assert world.stored["db"].last_status_change == NOW


def test_c9_a_change_of_health_is_told_and_noted() -> None:
    world = World()
    world.poll(good(item()))
    world.poll_when_due(good(item(healthy=False)))
    changed = world.now
    world.poll_when_due(good(item(healthy=False)))
    [event] = world.told("status:change")
    assert event.payload == {
        "serviceId": 7,
        "serviceName": "orders",
        "dependencyName": "db",
        "previousHealthy": True,
        "currentHealthy": False,
        "timestamp": changed.isoformat(),
    }
    assert world.stored["db"].last_status_change == changed
    world.poll_when_due(good(item()))
    assert [event.payload["currentHealthy"] for event in world.told("status:change")] == [
        False,
        True,
    ]


def test_c9_a_failed_poll_says_nothing_of_dependencies() -> None:
    world = World()
    world.poll(good(item()))
    decision = world.poll(bad())
    assert not any((decision.dependencies, decision.gone, decision.latencies))


@pytest.mark.parametrize(("fail_after", "recover_after"), [(2, 3), (3, 1)])
def test_a_change_counts_once_it_was_seen_so_often_in_a_row(
    fail_after: int, recover_after: int
) -> None:
    """An answer in between starts the count anew."""
    world = World(service=service(fail_after=fail_after, recover_after=recover_after))
    ill, well = good(item(healthy=False)), good(item())
    world.poll(well)
    for turn in (*[ill] * (fail_after - 1), well, *[ill] * (fail_after - 1)):
        world.poll_when_due(turn)
    assert not world.told("status:change")
    assert world.stored["db"].item.healthy
    world.poll_when_due(ill)
    assert len(world.told("status:change")) == 1
    for turn in (*[well] * (recover_after - 1), ill, *[well] * (recover_after - 1)):
        world.poll_when_due(turn)
    assert len(world.told("status:change")) == 1
    world.poll_when_due(well)
    assert len(world.told("status:change")) == 2


def test_bad_news_in_maintenance_is_told_afterwards_if_it_is_still_bad() -> None:
    """Although the answers say the same all the time."""
    world = World()
    world.poll(good(item(), item("cache")))
    world.change(suppressed="maintenance")
    ill = item(healthy=False)
    world.poll_when_due(good(ill, item("cache", healthy=False)))
    world.poll_when_due(good(ill, item("cache")))
    assert [event.payload["dependencyName"] for event in world.told("status:change")] == ["cache"]
    world.change(suppressed=None)
    for _ in range(3):
        world.poll_when_due(good(ill, item("cache")))
    told = [event.payload for event in world.told("status:change")]
    assert [(each["dependencyName"], each["currentHealthy"]) for each in told] == [
        ("cache", True),
        ("db", False),
    ]


# --- errors


MARKER = {"unhealthy": True}


@pytest.mark.parametrize(
    ("answers", "history"),
    [
        pytest.param([item(), item()], [], id="healthy all the time"),
        pytest.param(
            [item(healthy=False)], [(MARKER, "Unhealthy")], id="unhealthy without an error"
        ),
        pytest.param(
            [item(healthy=False, error_message="slow")], [(MARKER, "slow")], id="its message"
        ),
        pytest.param(
            [
                item(healthy=False, error={"a": 1, "b": 2}),
                item(healthy=False, error={"b": 2, "a": 1}),
            ],
            [({"a": 1, "b": 2}, None)],
            id="the same in another order",
        ),
        pytest.param(
            [
                item(healthy=False, error={"a": 1, "b": 2}, code=500),
                item(healthy=False, error={"b": 2, "a": 1}, code=501),
            ],
            [({"a": 1, "b": 2}, None)],
            id="the same in another order, of what has changed otherwise",
        ),
        pytest.param(
            [item(healthy=False, code=500), item(healthy=False, code=501)],
            [(MARKER, "Unhealthy")],
            id="still without an error, of what has changed otherwise",
        ),
        pytest.param(
            [item(healthy=False, error=1), item(healthy=False, error=True)],
            [(1, None), (True, None)],
            id="1 is not true",
        ),
        pytest.param(
            [item(healthy=False, error="a"), item(healthy=False, error="b")],
            [("a", None), ("b", None)],
            id="another error",
        ),
        pytest.param(
            [item(healthy=False, error="a"), item(), item(), item(healthy=False, error="a")],
            [("a", None), (None, None), ("a", None)],
            id="a recovery after an error, once",
        ),
        pytest.param(
            [item(error={"code": "W1"})], [], id="an error of what is healthy is no error"
        ),
    ],
)  # fmt: skip
def test_c10_errors_without_repeats(
    answers: list[Item], history: list[tuple[Any, str | None]]
) -> None:
    world = World()
    for answer in answers:
        world.poll(good(answer))
    assert [(error, message) for _, error, message in world.errors] == history


def test_c10_the_history_says_what_answers_say_before_a_change_counts() -> None:
    world = World(service=service(fail_after=3))
    world.poll(good(item()))
    world.poll(good(item(healthy=False, error="e")))
    assert world.errors == [("db", "e", None)]


# --- latencies


def test_c11_latencies_above_zero_of_each_good_poll() -> None:
    """Also when nothing else has changed."""
    world = World()
    for latency in (5, 6):
        decision = world.poll(good(item(latency_ms=latency), item("cache", latency_ms=0)))
        assert [tuple(each) for each in decision.latencies] == [(7, "db", latency)]


# --- dependencies that are not there any more


def test_a_dependency_is_gone_after_three_good_answers_without_it() -> None:
    world = World()
    world.poll(good(item(), item("cache")))
    for polled in (good(item()), bad(), good(item())):
        world.poll(polled)
    assert world.stored["cache"].missing == 2
    world.poll(good(item()))
    assert world.stored.keys() == {"db"}
    [gone] = world.told("dependency:gone")
    assert gone.payload == {"serviceId": 7, "serviceName": "orders", "dependencyName": "cache"}
    assert not world.standing.is_unsettled


def test_one_that_comes_back_in_time_was_never_gone() -> None:
    world = World()
    both = good(item(), item("cache"))
    for polled in (both, good(item()), good(item()), both, good(item()), good(item())):
        world.poll(polled)
    assert "dependency:gone" not in kinds(world.events)


# --- what need not be read


def test_an_equal_answer_reads_and_writes_no_dependencies() -> None:
    world = World()
    for latency in range(1, 6):
        decision = world.poll(
            good(item(latency_ms=latency, last_checked=datetime(2030, 1, latency, tzinfo=UTC)))
        )
    assert world.reads == 1
    assert not decision.dependencies


def test_an_answer_that_differs_in_one_item_writes_only_that() -> None:
    world = World()
    world.poll(good(item(), item("cache")))
    decision = world.poll(good(item(), item("cache", state=1)))
    assert [after.item.name for after in decision.dependencies] == ["cache"]


@pytest.mark.parametrize(
    "other",
    [
        item(healthy=False), item(type="database"), item(description="d"), item(impact="i"),
        item(state=1), item(code=500), item(skipped=True), item(contact={"a": 1}),
        item(check_details={"a": 1}), item(error=1), item(error_message="m"), item("other"),
    ],
)  # fmt: skip
def test_whatever_is_stored_counts_for_the_digest(other: Item) -> None:
    assert digest_of([item()]) != digest_of([other])


def test_the_order_of_items_does_not_count_for_the_digest() -> None:
    items = [item("a"), item("b"), item("c", healthy=False)]
    assert len({digest_of(order) for order in permutations(items)}) == 1


@pytest.mark.parametrize("seed", range(50))
def test_c9_however_answers_go_changes_alternate_and_none_is_left_out(seed: int) -> None:
    """What is stored is what the last change said."""
    chance = random.Random(seed)
    world = World(
        service=service(fail_after=chance.randint(1, 3), recover_after=chance.randint(1, 3))
    )
    believed: dict[str, bool] = {}
    for _ in range(60):
        world.change(suppressed=chance.choice([None, None, "maintenance"]))
        names = [name for name in "abc" if chance.random() < 0.8]
        decision = world.poll(good(*(item(name, healthy=chance.random() < 0.5) for name in names)))
        world.now += EVERY
        for name in decision.gone:
            believed.pop(name)
        for event in decision.events:
            if event.kind == "status:change":
                name, now = event.payload["dependencyName"], event.payload["currentHealthy"]
                assert event.payload["previousHealthy"] is not now
                is_late = believed[name] is now
                assert not is_late or not now  # only bad news is told afterwards
                believed[name] = now
        for after in decision.dependencies:
            believed.setdefault(after.item.name, after.item.healthy)
        assert believed == {name: one.item.healthy for name, one in world.stored.items()}
