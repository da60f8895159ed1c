"""What the log says of jobs: ordinary ones in sum, others one by one, and all of them at debug
level (A12).
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued, Settlement
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.telemetry.logs.job_fields import job_fields, shorten, trace_id_of
from hybrid_runner.worker.report import job_log as module
from hybrid_runner.worker.report.job_log import (
    FIRST_JOBS,
    MOST_KINDS,
    MOST_LINES,
    JobLog,
    tell_start,
)
from tests.support.working import outcome, runner, working

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


class StandingClock:
    """It goes on when a test moves it: a busy machine does not."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The clock of job logs that are made in this test."""
    clock = StandingClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def settle(job_log: JobLog, *settled: Settlement) -> None:
    job_log.on_settled(BatchSettled(settled, [], 0.0, 0.0))


def completed(number: int = 1, queue: str = "default") -> Finished:
    return Finished(claim(number, queue), State.COMPLETED)


def failed(number: int = 1) -> Finished:
    return Finished(
        claim(number, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"), State.FAILED, error=ERROR
    )


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "hybrid_runner.worker")
    return caplog


def test_completed_jobs_are_one_line_a_queue_with_their_number_and_run_times(
    said: pytest.LogCaptureFixture, clock: StandingClock
) -> None:
    """A12"""
    job_log = JobLog()
    clock.now += 3
    settle(job_log, *(completed(number) for number in range(1, 1001)))
    settle(job_log, completed(queue="images"))
    assert not said.messages
    job_log.summarise()
    first, second = said.messages
    assert first.startswith(
        "default: 1,000 completed in the last 3.0 s; they ran p50 501.0 ms, p99 991.0 ms"
    )
    assert second.startswith("images: 1 completed in the last")
    assert (said.records[0].settled, said.records[0].queue) == ({"completed": 1000}, "default")  # type: ignore[attr-defined]
    job_log.summarise()
    assert len(said.messages) == 2  # nothing has happened since


def test_whoever_watches_sees_the_first_completed_jobs_one_by_one(
    said: pytest.LogCaptureFixture,
) -> None:
    """A worker that is silent for ten seconds after the first job seems not to have run it."""
    job_log = JobLog(show_first=True)
    settle(job_log, completed(), failed())
    settle(job_log, *(completed(number) for number in range(2 * FIRST_JOBS)))
    lines = [(record.levelname, record.getMessage()) for record in said.records]
    assert lines.count(("INFO", "note completed, attempt 2 of 5")) == FIRST_JOBS
    assert len(lines) == FIRST_JOBS + 1
    job_log.summarise()
    assert f"{2 * FIRST_JOBS + 1} completed" in said.messages[-1]
    assert "without a line" not in said.messages[-1]


IS_WATCHED = """
import logging
from hybrid_runner.telemetry.logs.setup import configure_logs, is_watched
configure_logs({level!r}, "console")
logging.getLogger().handlers[0].setLevel({shown_from})
print(is_watched())
"""


@pytest.mark.parametrize(
    ("level", "shown_from", "on_terminal", "expected"),
    [
        ("info", logging.NOTSET, True, True),
        ("info", logging.NOTSET, False, False),
        ("warning", logging.NOTSET, True, False),
        ("info", logging.ERROR, True, False),
    ],
)
def test_a_worker_is_watched_if_its_info_lines_go_to_a_terminal(
    level: str, shown_from: int, *, on_terminal: bool, expected: bool
) -> None:
    ours, terminal = os.openpty()
    try:
        program = IS_WATCHED.format(level=level, shown_from=shown_from)
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=terminal if on_terminal else subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(terminal)
    assert done.stdout.strip() == str(expected)


async def test_a_worker_that_is_watched_logs_its_first_job(
    dsn: str, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    app = runner(dsn)
    app.job("note")(note)
    monkeypatch.setattr("hybrid_runner.worker.worker.is_watched", lambda: True)
    async with working(app):
        await outcome(app, "note")
    assert "note completed, attempt 1 of 5" in said.messages


async def note(payload: dict[str, int]) -> None: ...


def test_what_is_not_ordinary_has_a_line_of_its_own_with_the_ids_of_job_and_trace(
    said: pytest.LogCaptureFixture,
) -> None:
    """A12"""
    job_log = JobLog()
    settle(
        job_log,
        completed(),
        failed(2),
        Finished(claim(3), State.CANCELLED),
        Requeued(claim(4), timedelta(seconds=3), charged=True, why="retry", error=ERROR),
        Requeued(claim(5), timedelta(seconds=2), charged=False, why="snooze"),
        Requeued(claim(6), timedelta(0), charged=False, why="release"),
    )
    assert [(record.levelname, record.getMessage()) for record in said.records] == [
        ("ERROR", "note failed for good, attempt 2 of 5: ValueError: no such thing"),
        ("WARNING", "note was cancelled, attempt 2 of 5"),
        ("WARNING", "note failed, attempt 2 of 5; again in 3.0 s: ValueError: no such thing"),
        ("INFO", "note is snoozed for 2.0 s"),
        ("INFO", "note is released, the attempt is not charged"),
    ]
    assert [record.event for record in said.records] == [  # type: ignore[attr-defined]
        "job.failed",
        "job.cancelled",
        "job.retried",
        "job.snoozed",
        "job.released",
    ]
    assert [record.job for record in said.records] == [2, 3, 4, 5, 6]  # type: ignore[attr-defined]
    assert said.records[0].trace_id == TRACE  # type: ignore[attr-defined]
    assert not hasattr(said.records[1], "trace_id")


def test_however_many_jobs_fail_the_lines_are_few_and_none_is_forgotten(
    said: pytest.LogCaptureFixture,
) -> None:
    """A12"""
    job_log = JobLog()
    for number in range(100):
        settle(job_log, *(failed(number) for _ in range(100)))
    assert len(said.messages) == MOST_LINES
    job_log.summarise()
    assert said.records[-1].levelname == "ERROR"  # those who read errors alone must hear of it
    assert "10,000 failed" in said.messages[-1]
    assert f"{10_000 - MOST_LINES:,} of them without a line of their own" in said.messages[-1]
    settle(job_log, failed())
    assert len(said.messages) == MOST_LINES + 2  # the next moment has lines of its own


def test_a_failure_for_good_brings_its_exception_along(said: pytest.LogCaptureFixture) -> None:
    """Tools that collect errors from the log need the exception's type and stack."""
    error = ValueError("no such thing")
    job_log = JobLog()
    settle(job_log, failed()._replace(exception=error), failed())
    assert [record.exc_info and record.exc_info[1] for record in said.records] == [error, None]


def test_a_summary_says_how_long_it_is_since_the_last_one(
    said: pytest.LogCaptureFixture, clock: StandingClock
) -> None:
    """Counted from the last summary, not from the first job: one job in 0.0 s is no rate."""
    job_log = JobLog()
    clock.now += 7
    settle(job_log, completed())
    job_log.summarise()
    assert said.messages == ["default: 1 completed in the last 7.0 s; it ran 1.0 ms"]


def test_the_start_names_the_kinds_and_where_sync_handlers_run(
    said: pytest.LogCaptureFixture,
) -> None:
    def handler(payload: object) -> None: ...

    def registry(count: int) -> Registry:
        made = Registry()
        for number in range(count):
            made.add(
                make_kind(
                    handler,
                    name=f"k{number}",
                    queue="default",
                    executor="thread",
                    max_attempts=1,
                    timeout=None,
                    retry=RetryPolicy(),
                )
            )
        return made

    tell_start("w", {"default": 7, "images": 2}, registry(1), 20)
    tell_start("w", {"default": 7}, registry(MOST_KINDS + 2), 20)
    few, threads, many, _ = said.messages
    assert few == "worker w has started: queues default (7 slots), images (2 slots); kinds k0"
    assert threads == "sync handlers share 20 threads (thread_slots): k0"
    assert many.endswith(f"k{MOST_KINDS - 1} and 2 more")


def test_at_debug_level_each_change_has_its_line(said: pytest.LogCaptureFixture) -> None:
    """A12"""
    said.set_level(logging.DEBUG, "hybrid_runner.worker")
    job_log = JobLog()
    settle(
        job_log,
        *(completed(number) for number in range(50)),
        *(failed(number) for number in range(50)),
    )
    assert len(said.messages) == 100
    job_log.summarise()
    assert "without" not in said.messages[-1]


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        (None, None),
        ("", None),
        ("00-short", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
    ],
)
def test_a_job_that_came_with_a_trace_is_logged_with_it(
    traceparent: str | None, trace_id: str | None
) -> None:
    assert trace_id_of(claim(traceparent=traceparent)) == trace_id
    assert job_fields(claim(traceparent=traceparent), "job.failed").get("trace_id") == trace_id


def test_a_long_payload_is_shortened() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 5000) == "x" * 200 + "… (5,000 characters)"
