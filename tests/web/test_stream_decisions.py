"""What the stream decides without a database: names of events, messages from strangers, what one
reader is sent.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.job_events import JobEvent, JobEventName
from hybrid_runner.model.jobs import JobSnapshot, State
from hybrid_runner.model.messages import JobsChanged, changes_channel
from hybrid_runner.web.stream.event_names import event_name
from hybrid_runner.web.stream.following import Follower
from hybrid_runner.web.stream.reader import BUFFER, MOST_FOLLOWED, EventReader, Subscription, event

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def snapshot(state: str = "queued", **fields: Any) -> JobSnapshot:
    usual = JobSnapshot(
        id=1,
        queue="default",
        kind="note",
        state=State(state),
        version=1,
        priority=5,
        attempt=0,
        snoozes=0,
        max_attempts=None,
        run_at=NOW,
        worker_id=None,
        started_at=None,
        finished_at=None,
        progress=None,
        cancel_requested_at=None,
        created_at=NOW,
    )
    return usual._replace(**fields)


RUNS = snapshot("running", version=2, attempt=1, started_at=NOW)


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        (None, snapshot(), "queued"),
        (None, snapshot(run_at=LATER), "queued"),
        (None, snapshot(attempt=2, run_at=LATER), "retried"),
        (None, RUNS, "running"),
        (snapshot(), RUNS, "running"),
        (RUNS, RUNS._replace(version=3, progress='{"fraction": 0.5}'), "progress"),
        (RUNS, RUNS._replace(version=3, cancel_requested_at=NOW), "cancelling"),
        (RUNS, RUNS._replace(version=4, attempt=2, started_at=LATER, progress="1"), "running"),
        (RUNS, snapshot(version=3, attempt=1, run_at=LATER), "retried"),
        (None, snapshot(snoozes=9, run_at=LATER), "snoozed"),
        (None, snapshot(snoozes=9), "queued"),
        (RUNS, snapshot(version=3, snoozes=1, run_at=LATER), "snoozed"),
        (RUNS, snapshot(version=3, snoozes=1), "queued"),
        (RUNS, snapshot(version=3), "queued"),
        (RUNS, snapshot(version=4, run_at=LATER), "queued"),
        (snapshot(), snapshot(version=3, snoozes=1, run_at=LATER), "snoozed"),
        (snapshot(snoozes=1), snapshot(version=2, snoozes=1, run_at=LATER), "queued"),
        (snapshot(), snapshot(version=3, attempt=1, run_at=LATER), "retried"),
        (snapshot(), snapshot(version=2, run_at=LATER), "queued"),
        (snapshot("failed", version=9, attempt=5), snapshot(version=10), "queued"),
        (RUNS, snapshot("completed", version=3, attempt=1), "completed"),
        (None, snapshot("failed", version=3, attempt=1), "failed"),
        (snapshot(), snapshot("cancelled", version=2), "cancelled"),
    ],
)
def test_an_event_is_named_by_what_has_happened(
    before: JobSnapshot | None, now: JobSnapshot, name: str
) -> None:
    """B13"""
    assert event_name(before, now, NOW) == name


CHANGES = changes_channel("changes")


def test_a_message_names_queue_kind_how_many_had_no_room_and_ids() -> None:
    assert CHANGES.read("images thumb 3 7 8") == JobsChanged("images", "thumb", 3, (7, 8))


@pytest.mark.parametrize(
    "payload",
    [
        "",
        " ",
        "images",
        "images thumb 0",
        "images thumb x 1",
        "images thumb 0 -1",
        "a b 0 \u0664",
        "a b 0 " + "9" * 20,
        "a b 0 9223372036854775808",
        "a b 9223372036854775808 1",
    ],
)
def test_a_message_from_a_stranger_is_ignored(payload: str) -> None:
    assert CHANGES.read(payload) is None


def reader(
    seen: int | None = None, job_id: int | None = 1, *, follow_ups: bool = False
) -> EventReader:
    return EventReader(Subscription(job_id, follow_ups=follow_ups), seen, lambda: True)


def change(job: JobSnapshot, name: JobEventName = "running") -> JobEvent:
    return JobEvent(name, job)


async def texts(of: EventReader) -> list[bytes]:
    """All that waits, as it would be written, until it ends or has nothing."""
    found = []
    while (text := await of.next(0)) not in (None, b": keep-alive\n\n"):
        assert text is not None
        found.append(text)
    return found


async def test_a_version_is_sent_once_and_never_an_older_one() -> None:
    """B13"""
    one = reader(seen=2)
    for version in (1, 2, 3, 2, 3, 5):
        one.offer(change(RUNS._replace(version=version)))
    [text] = await texts(one)
    assert re.findall(rb"^id: (\d+)$", text, re.MULTILINE) == [b"3", b"5"]


async def test_an_end_is_sent_even_when_history_was_lost() -> None:
    """After a failover to a server that was behind."""
    one = reader(seen=9)
    end = change(snapshot("completed", version=4), "completed")
    one.offer(end)
    assert one.ended
    assert await texts(one) == [end.as_sse()]


async def test_a_program_is_not_told_again_what_an_outage_has_not_changed() -> None:
    """A9 B13"""
    one = Follower(1, follow_ups=False)
    one.offer(change(RUNS))
    one.forget()
    one.offer(change(RUNS))
    one.offer(change(snapshot("completed", version=3), "completed"))
    assert [await one.next() for _ in range(3)] == [
        change(RUNS),
        change(snapshot("completed", version=3), "completed"),
        None,
    ]


async def test_a_program_that_follows_too_many_jobs_is_told_after_the_last_event() -> None:
    one = Follower(1, follow_ups=True)
    end = change(snapshot("completed", followed_by=list(range(2, 2 + MOST_FOLLOWED))), "completed")
    one.offer(end)
    assert await one.next() == end
    with pytest.raises(RunnerError, match=r"^job 1: 200 jobs were followed, as many as may be"):
        await one.next()


async def test_jobs_that_name_each_other_as_stored_are_followed_once() -> None:
    one = Follower(1, follow_ups=True)
    for job, stored in ((1, [2]), (2, [1, 2])):
        one.offer(change(snapshot("completed", id=job, followed_by=stored), "completed"))
    assert one.ended
    assert one.reason is None


async def test_whoever_does_not_read_is_dropped_with_the_reason() -> None:
    one = reader(job_id=None)
    given_up: list[bool] = []
    one.abort_write = lambda: given_up.append(True)
    for version in range(BUFFER + 1):
        one.offer(change(RUNS._replace(version=version)))
    assert one.ended
    assert given_up == [True]
    assert "too slowly" in str(one.reason)
    assert await texts(one) == []


async def test_what_could_not_be_shown_is_counted_and_told_once() -> None:
    one = reader(job_id=None)
    one.skip(3)
    one.skip(4)
    one.put_skipped()
    one.put_skipped()
    assert await texts(one) == [event("skipped", {"at_least": 7})]


async def test_a_count_that_no_browser_could_read_is_cut() -> None:
    """A message from a stranger may say any number, and many of them may."""
    one = reader(job_id=None)
    for _ in range(4):
        one.skip(2**63 - 1)
    one.put_skipped()
    assert await texts(one) == [event("skipped", {"at_least": 2**53 - 1})]


@pytest.mark.parametrize(
    ("subscription", "covers"),
    [
        (Subscription(), True),
        (Subscription(queue="images"), True),
        (Subscription(kind="thumb"), True),
        (Subscription(None, "images", "thumb"), True),
        (Subscription(queue="other"), False),
        (Subscription(kind="other"), False),
        (Subscription(None, "images", "other"), False),
        (Subscription(7), False),
    ],
)
def test_a_subscription_covers_its_queue_and_its_kind(
    subscription: Subscription, covers: bool
) -> None:
    assert subscription.covers("images", "thumb") is covers
