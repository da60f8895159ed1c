from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.model.monitors import (
    Decision,
    DependencyAfter,
    Item,
    Known,
    Polled,
    Standing,
    Unchanged,
)
from hybrid_runner.monitors import memory as memories
from hybrid_runner.monitors.memory import Memory, as_it_is, known_after, note
from tests.monitors.answers.services import service

NOW = datetime(2030, 1, 1, tzinfo=UTC)
URL = "http://a.internal/"


def known(number: int) -> Known:
    return Known(service(URL, id=number, standing=standing()), 1, NOW, NOW, 4)


def standing() -> Standing:
    return Standing(NOW, URL, NOW, ok=True, latency_ms=4, since=NOW, digest="x")


def test_hosts_that_were_polled_longest_ago_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memories, "_MOST", 5)
    memory = Memory()
    memory.keep("a", [known(1), known(2)])
    memory.keep("b", [known(3), known(4)])
    memory.keep("a", [known(2)])
    memory.keep("c", [known(5), known(6)])
    assert [len(memory.of(host)) for host in "abc"] == [2, 0, 2]
    memory.forget("a", [1, 2, 99])
    memory.keep("d", [known(7), known(8)])
    assert [len(memory.of(host)) for host in "acd"] == [0, 2, 2]


def test_a_host_alone_is_remembered_however_many_services_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own round has just polled them."""
    monkeypatch.setattr(memories, "_MOST", 5)
    memory = Memory()
    memory.keep("a", [known(1)])
    memory.keep("b", [known(number) for number in range(2, 9)])
    assert [len(memory.of(host)) for host in "ab"] == [0, 7]


def test_what_is_known_has_the_times_of_the_last_poll() -> None:
    one, later = known(1), NOW + timedelta(seconds=30)
    note(one, Unchanged(1, later + timedelta(seconds=30), later, 9, [], []), 77)
    found = as_it_is(one).standing
    assert found is not None
    assert (found.due_at, found.polled_at, found.latency_ms) == (
        later + timedelta(seconds=30),
        later,
        9,
    )
    assert one.standing_version == 77


def test_only_a_good_poll_of_a_service_that_is_well_is_remembered() -> None:
    of = service(URL, id=1, standing=standing(), version=3, dependency_ids={}, is_asked=True)
    well = Decision(1, standing(), polled=Polled(1, URL, 4))
    found = known_after(of, well, 9)
    assert found is not None
    assert (found.standing_version, found.service.is_asked) == (9, False)
    failed = Decision(1, standing(), polled=Polled(1, URL, 4, failure="http", error="503"))
    assert known_after(of, failed, 9) is None
    assert known_after(of, Decision(1, standing()), 9) is None
    other = DependencyAfter(1, Item("db", healthy=True), 0, True, 0, False)
    assert known_after(of, replace(well, dependencies=(other,)), 9) is None
    gone = Decision(1, standing(), polled=Polled(1, URL, 4), gone=("db",))
    assert known_after(of, gone, 9) is None
    quiet = replace(of, suppressed="maintenance")
    assert known_after(quiet, well, 9) is None
