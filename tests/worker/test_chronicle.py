"""What the log says of jobs: ordinary ones in sum, others one by one, and all of them at debug level (A12)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.happenings import Writing
from hybrid_runner.models import Claim, State
from hybrid_runner.outcomes import Finished, Requeued, Settlement
from hybrid_runner.telemetry.about import about, shorten, trace_id_of
from hybrid_runner.worker.chronicle import MOST_LINES, Chronicle

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ERROR = '{"type": "ValueError", "message": "no  such\\nthing"}'


def claim(number: int = 1, queue: str = "default", traceparent: str | None = None) -> Claim:
    return Claim(
        number,
        queue,
        "note",
        5,
        "{}",
        None,
        None,
        NOW,
        5,
        None,
        None,
        traceparent,
        2,
        7,
        NOW,
        began=10.0,
        ended=10.0 + number / 1000,
    )


def wrote(chronicle: Chronicle, *settled: Settlement) -> None:
    chronicle.wrote(Writing(settled, [], 0.0, 0.0))


def completed(number: int = 1, queue: str = "default") -> Finished:
    return Finished(claim(number, queue), State.COMPLETED)


def failed(number: int = 1) -> Finished:
    return Finished(claim(number, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"), State.FAILED, error=ERROR)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "hybrid_runner.worker")
    return caplog


def test_completed_jobs_are_one_line_a_queue_with_their_number_and_run_times(said: pytest.LogCaptureFixture) -> None:
    """A12"""
    chronicle = Chronicle()
    wrote(chronicle, *(completed(number) for number in range(1, 1001)))
    wrote(chronicle, completed(queue="images"))
    assert not said.messages
    chronicle.summarise()
    first, second = said.messages
    assert first.startswith("default: completed 1,000 in 0.0 s, ran p50 501.0 ms, p99 991.0 ms")
    assert second.startswith("images: completed 1 in")
    assert (said.records[0].settled, said.records[0].queue) == ({"completed": 1000}, "default")  # type: ignore[attr-defined]
    chronicle.summarise()
    assert len(said.messages) == 2  # nothing has happened since


def test_what_is_not_ordinary_has_a_line_of_its_own_with_the_ids_of_job_and_trace(said: pytest.LogCaptureFixture) -> None:
    """A12"""
    chronicle = Chronicle()
    wrote(
        chronicle, completed(), failed(2), Finished(claim(3), State.CANCELLED),
        Requeued(claim(4), timedelta(seconds=3), charged=True, why="retry", error=ERROR),
        Requeued(claim(5), timedelta(seconds=2), charged=False, why="snooze"),
    )  # fmt: skip
    assert [(record.levelname, record.getMessage()) for record in said.records] == [
        ("WARNING", "note failed, archived after attempt 2: ValueError: no such thing"),
        ("WARNING", "note cancelled, archived after attempt 2"),
        ("WARNING", "note retry: queued again, due in 3.0 s: ValueError: no such thing"),
        ("INFO", "note snooze: queued again, due in 2.0 s"),
    ]
    assert [record.job for record in said.records] == [2, 3, 4, 5]  # type: ignore[attr-defined]
    assert said.records[0].trace_id == TRACE  # type: ignore[attr-defined]
    assert not hasattr(said.records[1], "trace_id")


def test_however_many_jobs_fail_the_lines_are_few_and_none_is_forgotten(said: pytest.LogCaptureFixture) -> None:
    """A12"""
    chronicle = Chronicle()
    for number in range(100):
        wrote(chronicle, *(failed(number) for _ in range(100)))
    assert len(said.messages) == MOST_LINES
    chronicle.summarise()
    assert said.records[-1].levelname == "WARNING"  # those who read warnings alone must hear of it
    assert "failed 10,000" in said.messages[-1]
    assert f"{10_000 - MOST_LINES:,} of them without a line of their own" in said.messages[-1]
    wrote(chronicle, failed())
    assert len(said.messages) == MOST_LINES + 2  # the next moment has lines of its own


def test_at_debug_level_each_change_has_its_line(said: pytest.LogCaptureFixture) -> None:
    """A12"""
    said.set_level(logging.DEBUG, "hybrid_runner.worker")
    chronicle = Chronicle()
    wrote(chronicle, *(completed(number) for number in range(50)), *(failed(number) for number in range(50)))
    assert len(said.messages) == 100
    chronicle.summarise()
    assert "without" not in said.messages[-1]


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        (None, None), ("", None), ("00-short", None), (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
    ],
)  # fmt: skip
def test_a_job_that_came_with_a_trace_is_logged_with_it(traceparent: str | None, trace_id: str | None) -> None:
    assert trace_id_of(claim(traceparent=traceparent)) == trace_id
    assert about(claim(traceparent=traceparent)).get("trace_id") == trace_id


def test_a_long_payload_is_shortened() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 5000) == "x" * 200 + "… (5,000 characters)"
