"""What one poll changes of its service: due times, breaker, what is told. By a clock that is
moved.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from hybrid_runner.model.monitors import Standing, Stopped
from hybrid_runner.policy.monitor_rounds import place_of
from hybrid_runner.policy.monitors import due_when_well, missed, put_off, stop, try_breaker
from tests.policy.monitored import (
    EVERY,
    NOW,
    RULES,
    URL,
    World,
    bad,
    good,
    item,
    kinds,
    seconds,
    service,
)

WHO = {"serviceId": 7, "serviceName": "orders"}


# --- due times


@pytest.mark.parametrize(
    ("failures", "pause"),
    [(1, 30), (2, 30), (5, 30), (6, 32), (7, 64), (8, 128), (9, 256), (10, 300)],
)
def test_c3_the_next_poll_is_after_the_interval_or_the_backoff_whichever_is_longer(
    failures: int, pause: int
) -> None:
    """1 s, doubled by each failure, 300 s at most. The tenth opens the breaker."""
    world = World()
    for _ in range(failures):
        world.poll(bad())
    assert world.standing.failures == failures
    assert world.standing.due_at - world.now == seconds(pause)


def test_c3_one_success_resets_the_backoff() -> None:
    world = World()
    for _ in range(9):
        world.poll(bad())
    world.poll(good())
    assert (world.standing.failures, world.standing.due_at) == (0, NOW + EVERY)
    world.poll(bad())
    assert world.standing.due_at == NOW + EVERY


def test_c4_a_success_is_due_after_the_interval() -> None:
    world = World()
    world.poll(good())
    assert world.standing.due_at == NOW + EVERY


def test_c4_what_is_polled_late_with_others_keeps_its_rhythm() -> None:
    """Rounds gather what comes due within a tick; the interval does not grow by that."""
    world = World()
    world.poll(good())
    for turn in range(1, 11):
        world.now = world.standing.due_at + seconds(2.5)
        world.poll(good())
        assert world.standing.due_at == NOW + EVERY * (turn + 1)


@pytest.mark.parametrize("every", [6, 10, 20, 30, 31, 60])
@pytest.mark.parametrize("late", [0, 1, 5, 6, 9, 14.9])
@pytest.mark.parametrize("seed", range(10))
def test_c1_what_is_polled_late_and_then_gathered_is_not_due_at_once(
    every: float, late: float, seed: int
) -> None:
    """The moment to which it is moved may be over when its poll ends."""
    was_due_at, place = NOW + seconds(random.Random(seed).uniform(0, 1e4)), place_of(seed)
    now, of = was_due_at + seconds(min(late, every / 2)), service(every=seconds(every))
    due_at = due_when_well(of, was_due_at, now, RULES, place)
    soonest = min(was_due_at + of.every, now + RULES.tick)
    assert soonest <= due_at <= now + of.every + RULES.tick
    again = due_when_well(of, due_at, due_at, RULES, place)
    assert abs(again - due_at - of.every) < seconds(0.001)


def test_c4_what_is_very_late_starts_anew() -> None:
    """An answer that takes longer than the interval: the next poll is an interval after its end."""
    world = World()
    world.poll(good())
    world.now = world.standing.due_at + seconds(40)
    world.poll(good())
    assert world.standing.due_at == world.now + EVERY


def test_c4_an_open_breaker_is_due_when_its_cool_down_is_over() -> None:
    world = World()
    for _ in range(10):
        world.poll_when_due(bad()) if world.service.standing else world.poll(bad())
    assert world.standing.breaker == "open"
    assert world.standing.due_at - world.now == timedelta(minutes=5)


def test_c4_another_address_is_polled_at_once_with_a_new_breaker() -> None:
    """Whatever the old one's breaker says."""
    world = World()
    for _ in range(10):
        world.poll(bad())
    other = "http://orders.example/dependencies"
    world.change(url=other)
    decision = world.poll(replace(good(), url=other))
    assert decision.polled is not None
    assert (world.standing.url, world.standing.breaker) == (other, "closed")
    assert world.standing.due_at == world.now + EVERY
    assert kinds(decision.events) == ["circuit:close", "poll:complete", "service:up"]


def test_a_poll_that_was_asked_for_counts_for_the_rhythm() -> None:
    world = World()
    world.poll(good())
    world.now += seconds(10)
    world.change(is_asked=True)
    world.poll(good())
    assert world.standing.due_at == world.now + EVERY


# --- the breaker


def test_c2_ten_failures_open_it_and_a_success_before_that_starts_the_count_anew() -> None:
    world = World()
    for _ in range(9):
        world.poll(bad())
    world.poll(good())
    for _ in range(9):
        world.poll(bad())
    assert world.standing.breaker == "closed"
    assert "circuit:open" not in kinds(world.events)
    world.poll(bad())
    assert (world.standing.breaker, world.standing.opened_at) == ("open", world.now)
    assert kinds(world.events)[-3:] == ["circuit:open", "poll:complete", "poll:error"]


def test_c2_while_it_is_open_nothing_goes_and_the_cool_down_is_not_begun_anew() -> None:
    """A cool-down of 300 s is one of 300 s, however often somebody looks."""
    world = World()
    for _ in range(10):
        world.poll(bad())
    opened = world.now
    for _ in range(59):
        world.now += seconds(5)
        assert world.poll(good()).polled is None
        assert world.standing.due_at == opened + timedelta(minutes=5)
    world.now = opened + timedelta(minutes=5)
    tried = try_breaker(world.service, world.now, world.rules)
    assert (tried.put_off, tried.is_probe) == (None, True)


def test_c2_a_probe_that_is_on_its_way_lets_no_other_through() -> None:
    """It is written down before it goes: whoever looks meanwhile waits."""
    probing = Standing(
        NOW, URL, failures=10, breaker="half_open", opened_at=NOW, polled_at=NOW - EVERY
    )
    tried = try_breaker(service(probing), NOW + seconds(20), World().rules)
    assert tried.put_off is not None
    assert tried.put_off.after.due_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize("ok", [True, False])
def test_c2_what_the_probe_finds_closes_or_opens_it(*, ok: bool) -> None:
    world = World()
    for _ in range(10):
        world.poll(bad())
    world.events.clear()
    world.poll_when_due(good() if ok else bad())
    if ok:
        assert (world.standing.breaker, world.standing.opened_at) == ("closed", None)
        assert world.told("circuit:close")[0].payload == WHO
    else:
        assert (world.standing.breaker, world.standing.opened_at) == ("open", world.now)
        assert world.standing.due_at == world.now + timedelta(minutes=5)
        assert not world.told("circuit:open", "circuit:close")


def test_a_poll_that_was_asked_for_passes_an_open_breaker_and_counts_for_it() -> None:
    world = World()
    for _ in range(10):
        world.poll(bad())
    world.now += seconds(10)
    world.change(is_asked=True)
    world.poll(bad())
    assert (world.standing.breaker, world.standing.opened_at) == ("open", NOW)
    assert world.standing.due_at == NOW + timedelta(minutes=5)
    world.change(is_asked=True)
    world.poll(good())
    assert world.standing.breaker == "closed"


def test_a_clock_that_was_set_back_does_not_keep_it_open_for_longer() -> None:
    ahead = Standing(NOW, URL, failures=10, breaker="open", opened_at=NOW + timedelta(days=1))
    world = World(service=service(ahead))
    world.poll(good())
    assert world.standing.due_at == NOW + timedelta(minutes=5)
    world.poll_when_due(good())
    assert world.standing.breaker == "closed"


@pytest.mark.parametrize("seed", range(50))
def test_c2_however_polls_end_never_two_go_within_one_cool_down(seed: int) -> None:
    chance = random.Random(seed)
    world, probed_at, probes = World(), None, 0
    for _ in range(300):
        world.now += seconds(chance.uniform(0, 100))
        was_open = world.service.standing is not None and world.standing.breaker != "closed"
        ok = chance.random() < 0.1
        if world.poll(good() if ok else bad()).polled is None or not was_open:
            continue
        probes += 1
        assert probed_at is None or world.now - probed_at >= timedelta(minutes=5)
        probed_at = None if ok else world.now
    assert probes


# --- what is told


def test_c13_a_good_poll() -> None:
    decision = World().poll(good(item(), item("cache", latency_ms=0), warnings=("odd",)))
    assert [tuple(event) for event in decision.events] == [
        ("service:started", 7, WHO, None),
        (
            "poll:complete",
            7,
            {
                "serviceId": 7,
                "success": True,
                "dependenciesUpdated": 2,
                "statusChanges": [],
                "latencyMs": 12,
                "warnings": ["odd"],
            },
            None,
        ),
    ]


def test_c13_a_failed_poll_is_told_as_complete_and_as_an_error() -> None:
    world = World()
    world.poll(good())
    decision = world.poll(bad())
    complete, error, down = decision.events
    assert complete.kind == "poll:complete"
    assert complete.payload == {
        "serviceId": 7,
        "success": False,
        "dependenciesUpdated": 0,
        "statusChanges": [],
        "latencyMs": 9,
        "error": "it answered 503, no 2xx",
    }
    assert tuple(error) == (
        "poll:error",
        7,
        {**WHO, "error": "it answered 503, no 2xx"},
        None,
    )
    assert down.kind == "service:down"


def test_c13_the_changes_of_health_of_a_poll_are_in_its_event() -> None:
    world = World()
    world.poll(good(item()))
    decision = world.poll(good(item(healthy=False)))
    complete, change = decision.events
    assert complete.payload["statusChanges"] == [change.payload]


def test_c13_started_and_stopped() -> None:
    world = World()
    assert kinds(world.poll(good()).events)[0] == "service:started"
    assert "service:started" not in kinds(world.poll(good()).events)
    [stopped] = stop(Stopped(7, "orders", is_deleted=True))
    assert (stopped.kind, stopped.payload) == ("service:stopped", WHO)


def test_what_is_put_off_is_not_told_twice_that_it_started() -> None:
    world = World()
    world.keep(put_off(world.service, NOW + EVERY))
    assert kinds(world.events) == ["service:started"]
    world.poll(good())
    assert kinds(world.events) == ["service:started", "poll:complete"]


@pytest.mark.parametrize(("fail_after", "recover_after"), [(1, 1), (3, 2), (5, 1)])
def test_down_and_up_count_polls_in_a_row_and_say_since_when(
    fail_after: int, recover_after: int
) -> None:
    world = World(service=service(fail_after=fail_after, recover_after=recover_after))
    world.poll(good())
    for _ in range(fail_after - 1):
        world.poll_when_due(bad())
    world.poll_when_due(good())
    assert not world.told("service:down")
    first = world.standing.due_at
    for _ in range(fail_after):
        assert not world.standing.is_down
        world.poll_when_due(bad())
    assert (world.standing.is_down, world.standing.since) == (True, first)
    [down] = world.told("service:down")
    assert down.payload == {
        **WHO,
        "error": "it answered 503, no 2xx",
        "since": first.isoformat(),
    }
    world.poll_when_due(bad())
    for _ in range(recover_after - 1):
        world.poll_when_due(good())
    world.poll_when_due(bad())
    back = None
    for _ in range(recover_after):
        assert world.standing.is_down
        world.poll_when_due(good())
        back = back or world.now
    assert (world.standing.is_down, world.standing.since) == (False, back)
    [up] = world.told("service:up")
    assert up.payload["error"] is None
    assert len(world.told("service:down")) == 1


def test_since_is_the_first_poll_of_all_while_nothing_has_changed() -> None:
    world = World()
    world.poll(good())
    world.poll_when_due(good())
    assert world.standing.since == NOW


@pytest.mark.parametrize("why", ["maintenance", "parent"])
def test_bad_news_is_suppressed_and_told_when_that_is_over_and_it_is_still_bad(why: str) -> None:
    world = World()
    world.poll(good())
    world.change(suppressed=why)
    world.poll_when_due(bad())
    world.poll_when_due(bad())
    [down] = [event for event in world.events if event.kind == "service:down"]
    assert down.suppressed == why
    world.change(suppressed=None)
    world.poll_when_due(bad())
    world.poll_when_due(bad())
    assert len(world.told("service:down")) == 1
    assert world.standing.told_down


def test_a_recovery_is_told_even_when_the_outage_was_not() -> None:
    world = World()
    world.poll(good())
    world.change(suppressed="maintenance")
    world.poll_when_due(bad())
    world.poll_when_due(good())
    assert kinds(world.told("service:down", "service:up")) == ["service:up"]


# --- the rest of what is stored


def test_c10_the_history_of_polls_has_no_repeats() -> None:
    world = World()
    for polled in (
        good(), bad(), bad(), bad("no answer within 10 s", "timeout"), bad(), good(), good(), bad(),
    ):  # fmt: skip
        world.poll(polled)
    assert world.errors == [
        (None, "http", "it answered 503, no 2xx"),
        (None, "timeout", "no answer within 10 s"),
        (None, "http", "it answered 503, no 2xx"),
        (None, None, None),
        (None, "http", "it answered 503, no 2xx"),
    ]


def test_c12_warnings_are_those_of_the_last_poll() -> None:
    world = World()
    world.poll(good(warnings=("item 3 has no name",)))
    assert world.standing.warnings == ("item 3 has no name",)
    world.poll(good())
    assert not world.standing.warnings


def test_a_failed_poll_keeps_what_is_known_of_the_certificate_and_the_answer() -> None:
    world = World()
    ends = NOW + timedelta(days=9)
    world.poll(good(item(), certificate_ends_at=ends))
    digest = world.standing.digest
    world.poll(bad())
    assert (world.standing.certificate_ends_at, world.standing.digest) == (ends, digest)
    world.poll(good(item()))
    assert world.standing.certificate_ends_at is None


def test_a_missed_poll_changes_nothing_but_the_due_time() -> None:
    world = World()
    world.poll(good())
    world.poll_when_due(bad())
    later = world.now + seconds(30)
    decision = missed(world.service, bad(failure="network"), later, world.rules)
    assert not decision.events
    assert decision.after == replace(world.standing, due_at=later + EVERY)


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_poll_that_was_put_off_is_due_at_once_if_somebody_waits_for_it(*, is_asked: bool) -> None:
    """C5: else who asks for a poll of an hourly service would wait for an hour."""
    world = World()
    world.poll(good())
    put_off = replace(bad("busy", "timeout"), is_put_off=True)
    world.change(is_asked=is_asked)
    decision = missed(world.service, put_off, world.now, world.rules)
    assert decision.after == replace(
        world.standing, due_at=world.now if is_asked else world.now + EVERY
    )
    assert (decision.polled is None) is is_asked


def test_a_probe_that_was_missed_is_made_again_after_the_interval() -> None:
    world = World()
    for _ in range(10):
        world.poll(bad())
    world.now = world.standing.due_at
    probing = try_breaker(world.service, world.now, world.rules).service
    world.keep(missed(probing, bad(failure="network"), world.now, world.rules))
    assert world.standing.due_at == world.now + EVERY
    early = try_breaker(world.service, world.now + seconds(29), world.rules)
    assert early.put_off is not None
    assert try_breaker(world.service, world.standing.due_at, world.rules).is_probe
