"""Messages are hints from strangers: read, never trusted, and written as they are read."""

from __future__ import annotations

import pytest

from hybrid_runner.model.messages import (
    READERS,
    CancelAsked,
    HelpWanted,
    JobDue,
    JobLater,
    JobsChanged,
    JobsRead,
    QueueMessage,
    QueueResumed,
    RingPassedOn,
    WorkerCame,
    WorkerLeft,
    changes_channel,
    channel_of,
)

QUEUE = channel_of("default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", JobDue()),
        ("later", JobLater()),
        ("later 1500", JobLater(1500)),
        ("help", HelpWanted()),
        ("help resumed", QueueResumed()),
        ("here host-1 a", WorkerCame("host-1 a")),
        ("gone host-1", WorkerLeft("host-1")),
        ("pass now 4711 2", RingPassedOn(later=False, ringer=4711, place=2)),
        ("pass later 4711 2", RingPassedOn(later=True, ringer=4711, place=2)),
        ("cancel 9223372036854775807", CancelAsked(2**63 - 1)),
    ],
)
def test_a_message_is_written_as_it_is_read(text: str, message: QueueMessage) -> None:
    assert (QUEUE.read(text), message.text) == (message, text)


@pytest.mark.parametrize("text", ["x", "Later", "hello world", " ", "\u0664", "x" * 8000])
def test_what_is_unknown_makes_a_worker_look(text: str) -> None:
    assert QUEUE.read(text) == JobDue()


@pytest.mark.parametrize(
    "text",
    [
        "cancel",
        "cancel x",
        "cancel -1",
        "cancel 9223372036854775808",
        "cancel " + "9" * 5000,
        "cancel \u0664",
        "pass",
        "pass now",
        "pass now 1",
        "pass now 1 2 3",
        "pass now x 1",
        "pass now 1 -1",
        "pass now 1 " + "9" * 30,
        "pass now \u0664 1",
        "here",
        "here ",
        "here " + "x" * 256,
        "gone",
        "gone " + "x" * 256,
    ],
)
def test_a_known_word_with_an_argument_of_no_use_is_ignored(text: str) -> None:
    assert QUEUE.read(text) is None


@pytest.mark.parametrize(("text", "milliseconds"), [("6000", 6000), ("0", 0), ("60001", 60_000)])
def test_readers_are_believed_for_a_minute_at_most(text: str, milliseconds: int) -> None:
    assert READERS.read(text) == JobsRead(milliseconds)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "9" * 30, "\u0664"])
def test_readers_that_say_no_number_are_ignored(text: str) -> None:
    assert READERS.read(text) is None


def test_changes_are_written_as_they_are_read() -> None:
    changed = JobsChanged("images", "thumb", 3, (7, 8))
    assert changes_channel("changes").read(changed.text) == changed
