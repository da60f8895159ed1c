"""A fleet of monitors that loses members, a start of everything at once, and whether the laws that
judge them are worth anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from examples.status_monitor.fake.journal import Journal, Visit
from examples.status_monitor.fake.server import FakeService
from tests.behaviour.monitors import restart
from tests.behaviour.monitors.laws import check, stored_wrongly, without_repeats
from tests.behaviour.monitors.mix import Options, mix
from tests.behaviour.monitors.plan import COOLDOWN, EVERY, FAILURES, Planned, plan
from tests.behaviour.monitors.records import Records, Told

HOST = "127.0.2.1"


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_while_members_are_killed_nothing_is_polled_twice_told_twice_or_lost(
    dsn: str,
) -> None:
    """C2, C5, C6, C9, C13, F1: a short run of `python -m tests.behaviour.monitors`."""
    options = Options(seconds=30, services=120, kill_every=7)
    outcome = await mix(dsn, options)
    assert not outcome.violations, "\n".join(map(str, outcome.violations[:5]))


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_a_start_of_everything_makes_no_burst(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C5: neither when all services are new nor when all are overdue. Without being spread, all
    come at once, ten times as many as usual; what comes after some seconds of a machine that stood
    still is less.
    """
    monkeypatch.setenv("HYBRID_RUNNER_MONITORS_TICK", "1s")  # the hosts are few
    outcome = await restart.run(dsn, restart.Options(services=400, per_host=20, every=10, most=6))
    assert not outcome.violations, outcome


# --- the plan


def test_all_scripts_of_the_mix_are_played_and_an_address_is_shared() -> None:
    planned = plan(80, 40)
    assert len({service.name for service in planned}) == 80
    assert len({service.fake.name for service in planned}) == 78
    assert {service.fake.host for service in planned} == {"127.0.2.1", "127.0.2.2"}


# --- the laws, on records made by hand

FLAPPING = Planned("flaps", FakeService("flaps", "flapping", HOST, 0))
FAILING = Planned("fails", FakeService("fails", "failing", HOST, 0))
BOTH = [FLAPPING, FAILING]
VISITS = 10


def visit(service: Planned, number: int, began: float, **more: Any) -> Visit:
    values: dict[str, Any] = {"at_host": 1, "at_address": 1, "answered": True, "who": "1"}
    fake = service.fake.name
    return Visit(fake, HOST, f"{HOST}/{fake}", number, began, began + 0.01, **(values | more))


def good() -> tuple[Journal, Records]:
    """Ten polls of one that is up for four, down for four, up again; six of one that always fails:
    its breaker is open after four.
    """
    apart = [EVERY * number for number in range(FAILURES)]
    apart += [apart[-1] + COOLDOWN, apart[-1] + 2 * COOLDOWN]
    visits = [visit(FLAPPING, number, EVERY * number) for number in range(VISITS)]
    visits += [visit(FAILING, number, at + 0.1) for number, at in enumerate(apart)]
    events = [told("service:started", "flaps"), told("service:started", "fails")]
    events += [told("poll:complete", "flaps", success=True) for _ in range(VISITS)]
    for _ in apart:
        events.append(told("poll:complete", "fails", success=False))
        events.append(told("poll:error", "fails"))
    events += [change(healthy=False), change(healthy=True), told("circuit:open", "fails")]
    records = Records(stored={"flaps": list(range(VISITS))}, open={"fails"})
    records.events = [event._replace(id=number) for number, event in enumerate(events, 1)]
    for event in records.events:
        if event.kind == "status:change":
            records.jobs[event.id] = records.told[event.id] = 1
    return Journal(visits=visits), records


def told(kind: str, service: str, **payload: Any) -> Told:
    return Told(0, kind, service, payload)


def change(*, healthy: bool) -> Told:
    return told("status:change", "flaps", dependencyName="database", currentHealthy=healthy)


def laws(journal: Journal, records: Records, killed: frozenset[str] = frozenset()) -> set[str]:
    return {violation.law for violation in check(BOTH, journal, records, set(killed))}


def test_good_records_break_no_law() -> None:
    assert laws(*good()) == set()


@pytest.mark.parametrize(
    ("more", "law"),
    [({"at_host": 6}, "too many at a host"), ({"at_address": 2}, "two at an address")],
)
def test_a_crowd_is_found(more: dict[str, int], law: str) -> None:
    journal, records = good()
    journal.visits[0] = visit(FLAPPING, 0, 0.0, **more)
    assert laws(journal, records) == {law}


def test_a_second_probe_is_found_unless_the_first_one_s_worker_was_killed() -> None:
    journal, records = good()
    last = journal.visits[-1]
    journal.visits.append(visit(FAILING, last.number + 1, last.ended + 1, who="2"))
    failed = [told("poll:complete", "fails", success=False), told("poll:error", "fails")]
    both = replace(records, events=numbered([*records.events, *failed]))
    assert laws(journal, both) == {"two probes of an open breaker"}
    journal.visits[-2] = last._replace(who="3")
    assert laws(journal, records, frozenset({"3"})) == set()


def test_a_request_that_the_client_repeats_is_one_poll() -> None:
    closing = Planned("closes", FakeService("closes", "closing", HOST, 0))
    # The second one comes late, since the machine is busy.
    visits = [visit(closing, 0, 1.0), visit(closing, 1, 3.1), visit(closing, 2, 9.0)]
    assert [one.number for one in without_repeats([closing], Journal(visits=visits)).visits] == [
        0,
        2,
    ]


def test_an_answer_that_came_too_late_is_a_failed_poll_whoever_else_was_killed() -> None:
    service = Planned("recovers", FakeService("recovers", "recovering", HOST, 0))
    well = next(number for number in range(20) if service.says(number) is not None)
    ill = next(number for number in range(20) if service.says(number) is None)
    late, lost = visit(service, well, 1.0), visit(service, ill, 9.0, who="9")
    failed = [
        told("poll:complete", "recovers", success=False),
        told("poll:error", "recovers"),
    ]
    journal, records = Journal(visits=[late, lost]), Records()
    assert [one.law for one in stored_wrongly([service], journal, records, {lost})] == [
        "a visit was not stored"
    ]
    records.events = numbered(failed)
    assert not list(stored_wrongly([service], journal, records, {lost}))


def test_a_poll_that_was_not_stored_is_found_unless_its_worker_was_killed() -> None:
    journal, records = good()
    journal.visits.append(visit(FLAPPING, VISITS, EVERY * VISITS, who="9"))
    assert laws(journal, records) == {"a visit was not stored"}
    assert laws(journal, records, frozenset({"9"})) == set()


def test_a_failed_poll_that_was_not_stored_is_found() -> None:
    journal, records = good()
    last = journal.visits[-1]
    journal.visits.append(visit(FAILING, last.number + 1, last.began + COOLDOWN))
    assert laws(journal, records) == {"a failed poll was not stored"}


@pytest.mark.parametrize(
    ("stored", "law"),
    [
        ([*range(VISITS), VISITS - 1], "stored twice"),
        ([1, 0, *range(2, VISITS)], "stored out of order"),
        ([*range(VISITS), 77], "stored without a good visit"),
    ],
)
def test_what_was_stored_wrongly_is_found(stored: list[int], law: str) -> None:
    journal, records = good()
    records.stored["flaps"] = stored
    assert law in laws(journal, records)


def numbered(events: list[Told]) -> list[Told]:
    return [event._replace(id=number) for number, event in enumerate(events, 1)]


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        ("status:change", "changes of health"),
        ("poll:complete", "polls told"),
        ("poll:error", "failed polls told"),
        ("service:started", "started"),
        ("circuit:open", "breakers told"),
    ],
)
@pytest.mark.parametrize("twice", [False, True], ids=["missing", "twice"])
def test_an_event_that_is_missing_or_twice_is_found(kind: str, law: str, twice: bool) -> None:
    journal, records = good()
    at = next(number for number, event in enumerate(records.events) if event.kind == kind)
    event = records.events[at]
    records.events[at : at + 1] = [event, event] if twice else []
    if kind == "poll:complete" and not twice:
        assert law in laws(journal, records)
    assert law in laws(journal, replace(records, events=numbered(records.events)))


def test_a_gap_in_the_numbers_of_events_is_found() -> None:
    journal, records = good()
    records.events[-1] = records.events[-1]._replace(id=99)
    assert laws(journal, records) == {"events are numbered with gaps"}


def test_a_health_that_is_stored_otherwise_is_found() -> None:
    journal, records = good()
    records.unhealthy.add(("flaps", "database"))
    assert laws(journal, records) == {"health as stored"}


def test_a_change_without_its_job_with_two_or_without_its_handler_is_found() -> None:
    for jobs, times in ((0, 1), (2, 1), (1, 0)):
        journal, records = good()
        event = next(iter(records.jobs))
        records.jobs[event], records.told[event] = jobs, times
        assert laws(journal, records) & {"jobs of an event", "nobody was told"}


def test_the_busiest_second_is_found_wherever_it_begins() -> None:
    visits = [visit(FLAPPING, 0, at) for at in (0.0, 0.9, 1.1, 1.2, 1.85, 5.0)]
    assert restart.busiest(visits) == 4
