"""A queue's workers are those that the last heartbeat named, and no message changes that."""

from __future__ import annotations

import pytest

from hybrid_runner.settings import Settings
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.queue.members import Members

SAME = "the same kinds"
ME, OTHER = "me", "other"


@pytest.fixture
def members() -> Members:
    """Of a worker that has had no heartbeat yet."""
    return Members(Identity(ME, Settings().work.lease), SAME)


def test_kinds_may_differ_until_a_heartbeat_says_otherwise(members: Members) -> None:
    differ = [members.kinds_differ]
    for kinds in (SAME, "other kinds"):
        members.update({ME: SAME, OTHER: kinds})
        differ.append(members.kinds_differ)
    assert differ == [True, False, True]


def test_rings_are_shared_by_many_with_equal_kinds_alone(members: Members) -> None:
    many = {ME: SAME, **{f"worker-{number}": SAME for number in range(5)}}
    shared = []
    for others in (many, {**many, OTHER: "other kinds"}):
        members.update(others)
        shared.append(members.share_rings)
    assert members.is_fleet
    assert shared == [True, False]


def test_messages_are_denied_where_the_heartbeat_says_otherwise(members: Members) -> None:
    members.update({ME: SAME, OTHER: SAME})
    assert members.denies("newcomer", here=True)
    assert members.denies(OTHER, here=False)
    assert not members.denies(OTHER, here=True)
    assert not members.denies("stranger", here=False)


def test_messages_about_itself_are_never_denied(members: Members) -> None:
    members.update({OTHER: SAME})
    assert not members.denies(ME, here=True)
    members.update({ME: SAME})
    assert not members.denies(ME, here=False)
    assert members.is_alone
