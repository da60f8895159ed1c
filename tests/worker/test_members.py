"""Whom a worker believes about who came and who left: heartbeats always, messages for a moment."""

from __future__ import annotations

import time

import pytest

from hybrid_runner.settings import Settings
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.queue.members import Members

SAME = "the same kinds"
ME = "me"


@pytest.fixture
def members() -> Members:
    """Of a worker that is alone, as a heartbeat has said."""
    members = Members(Identity(ME, Settings().work.lease), SAME)
    members.update({ME: SAME}, time.monotonic())
    assert not members.kinds_differ
    return members


def hear(members: Members, *others: str) -> None:
    """The answer to a heartbeat that was sent now."""
    members.update(dict.fromkeys((ME, *others), SAME), time.monotonic())


def test_a_whole_fleet_may_come_within_a_minute(members: Members) -> None:
    """A doubt that turns out to be right costs nothing."""
    here: list[str] = []
    for number in range(50):
        here.append(f"worker-{number}")
        assert members.came(here[-1])
        assert members.kinds_differ
        hear(members, *here)
        assert not members.kinds_differ


def test_ghosts_are_believed_three_times_and_no_more(members: Members) -> None:
    believed = []
    for number in range(10):
        assert members.came(f"ghost-{number}")
        believed.append(members.kinds_differ)
        hear(members)
        assert not members.kinds_differ
    assert believed == [True] * 3 + [False] * 7


def test_ghosts_that_never_cease_do_not_prolong_a_doubt(members: Members) -> None:
    doubted = 0
    for number in range(1000):
        members.came(f"ghost-{number}")
        asked_at = time.monotonic()
        members.came(f"later-ghost-{number}")
        members.update({ME: SAME}, asked_at)
        doubted += members.kinds_differ
    assert doubted <= 3


def test_a_heartbeat_that_was_sent_before_a_newcomer_spoke_does_not_end_the_doubt(
    members: Members,
) -> None:
    asked_at = time.monotonic()
    members.came("newcomer")
    members.update({ME: SAME}, asked_at - 1)
    assert members.in_doubt
    hear(members, "newcomer")
    assert not members.in_doubt


def test_who_left_stays_away_although_an_older_heartbeat_has_it(members: Members) -> None:
    hear(members, "other")
    asked_at = time.monotonic() - 1
    members.left("other")
    members.update({ME: SAME, "other": SAME}, asked_at)
    assert members.kinds_of.keys() == {ME}
    assert not members.is_alone, "that is for a heartbeat to say"
    hear(members)
    assert members.is_alone


def test_a_departure_that_a_heartbeat_denies_is_not_believed_again(members: Members) -> None:
    hear(members, "other")
    members.left("other")
    hear(members, "other")
    members.left("other")
    assert members.kinds_of.keys() == {ME, "other"}
    hear(members)
    hear(members, "other")  # a new one of its name
    members.left("other")
    assert members.kinds_of.keys() == {ME}
