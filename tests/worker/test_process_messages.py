"""What processes for handlers send: it arrives as it was, and whatever else comes is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from hybrid_runner import Fail, NewJob, Snooze
from hybrid_runner.model.outcomes import Completed, Left, Repeat
from hybrid_runner.worker.run.process_messages import (
    HEADER,
    BadMessage,
    Ended,
    Message,
    Save,
    read,
    written,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FULL = NewJob(
    "poll",
    '{"run": "ü"}',
    "polls",
    "poll-1",
    0,
    NOW,
    None,
    3,
    timedelta(minutes=5),
    NOW + timedelta(days=1),
    '{"task": "t1"}',
    "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
    7,
    timedelta(minutes=29),
    timedelta(hours=1),
)
SHORT = NewJob("tick", delay=timedelta(seconds=1.5))


def sent(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = orjson.loads(written(message)[HEADER.size :])
    return plain


@pytest.mark.parametrize(
    "message",
    [
        Save(1, 2, '{"task": "t1"}'),
        Ended(1, 2, Completed("null"), False),
        Ended(1, 2, Completed("null"), True, Left((FULL, SHORT))),
        Ended(1, 2, Snooze("2s", reason="not yet"), False, Left((), "[1]")),
        Ended(1, 2, Repeat("2s", [1]), False, Left((SHORT,))),
        Ended(1, 2, Repeat("2s", wake_on="orders"), False),
        Ended(1, 2, Fail("no", (FULL,)), False),
    ],
    ids=lambda message: type(message).__name__,
)
def test_it_arrives_as_it_was(message: Message) -> None:
    again = read(written(message)[HEADER.size :])
    assert sent(again) == sent(message)
    if isinstance(message, Ended):
        assert isinstance(again, Ended)
        assert again.left == message.left
    else:
        assert again == message


ENDED = sent(Ended(1, 2, Completed("null"), False))


@pytest.mark.parametrize(
    "change",
    [
        {"follow_ups": None},
        {"follow_ups": "jobs"},
        {"follow_ups": ["job"]},
        {"follow_ups": [{}]},
        {"follow_ups": [{"kind": "k", "id": 7}]},
        {"follow_ups": [{"kind": 7}]},
        {"follow_ups": [{"kind": "k", "payload": {}}]},
        {"follow_ups": [{"kind": "k", "priority": True}]},
        {"follow_ups": [{"kind": "k", "priority": "1"}]},
        {"follow_ups": [{"kind": "k", "delay": "1s"}]},
        {"follow_ups": [{"kind": "k", "delay": 1e300}]},
        {"follow_ups": [{"kind": "k", "run_at": "tomorrow"}]},
        {"follow_ups": [{"kind": "k", "run_at": 5}]},
        {"follow_ups": [{"kind": "k"}] * 1001},
        {"follow_ups": [{"kind": "k", "payload": "x" * 1024 * 1024}] * 3},
        {"data": 5},
        {"data": "{"},
        {"data": '"\\u0000"'},
        {"data": '"' + "x" * 1024 * 1024 + '"'},
        {"outcome": {"says": "fail", "reason": "", "cause": ""}},
        {"outcome": {"says": "fail", "reason": "", "cause": "", "then": 5}},
    ],
)
def test_what_a_handler_writes_into_its_pipe_itself_is_no_message(change: dict[str, Any]) -> None:
    """Its process is ended; the worker goes on."""
    with pytest.raises(BadMessage):
        read(orjson.dumps(ENDED | change))


@pytest.mark.parametrize("data", [None, 5, "", "{", '"\\u0000"', "NaN"])
def test_a_memory_that_is_no_json_is_no_message(data: object) -> None:
    with pytest.raises(BadMessage):
        read(orjson.dumps({"type": "save", "job": 1, "claim": 2, "data": data}))
