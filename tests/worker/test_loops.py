"""Loops that are started again, and the pauses after failures."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from hybrid_runner.errors import ConnectionLost, DatabaseError, DatabaseUnavailable
from hybrid_runner.worker.loops import Outage, keep, within

AWAY = DatabaseUnavailable("nobody answers")


@pytest.fixture(autouse=True)
def _without_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_runner.worker.loops.random.random", lambda: 0.0)


def test_pauses_grow_to_ten_seconds_and_begin_anew_once_it_works() -> None:
    """A9"""
    outage = Outage("the loop")
    assert [outage.failed(AWAY) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    outage.over()
    assert outage.failed(AWAY) == 1


def test_a_connection_that_worked_and_was_lost_costs_no_pause_and_the_next_failure_does() -> None:
    """A9: else a server whose sessions all end at once would be asked without end"""
    outage, lost = Outage("the loop"), ConnectionLost("it was ended")
    assert [outage.failed(lost) for _ in range(3)] == [0, 2, 4]
    outage.over()
    assert [outage.failed(AWAY), outage.failed(lost)] == [1, 2]


def test_no_pause_is_longer_than_it_may_be() -> None:
    """A9: a heartbeat has to come again before its worker is taken for dead"""
    outage = Outage("heartbeat", longest=3)
    assert [outage.failed(AWAY) for _ in range(3)] == [1, 2, 3]
    assert outage.failed(AWAY, longest=0.5) == 0.5


def test_outages_are_warnings_and_what_nobody_has_foreseen_is_an_error_with_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A9"""
    caplog.set_level(logging.INFO, "hybrid_runner.worker")
    outage = Outage("the loop")
    outage.over()
    for error in (AWAY, DatabaseError("no right"), ConnectionLost("gone"), ValueError("a bug")):
        outage.failed(error)
    outage.over()
    outage.over()
    assert [
        (record.levelname, record.message, bool(record.exc_info)) for record in caplog.records
    ] == [
        ("WARNING", "the loop: nobody answers; trying again in 1.0 s", False),
        ("WARNING", "the loop: no right; trying again in 2.0 s", False),
        ("WARNING", "the loop: gone; trying again in 4.0 s", False),
        ("ERROR", "the loop failed; trying again in 8.0 s", True),
        ("INFO", "the loop: works again after 4 failures", False),
    ]


async def test_a_loop_that_raises_is_run_again_and_one_that_returns_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A9"""
    pauses, runs = list[float](), 0

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def run() -> None:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise ValueError("a bug")

    monkeypatch.setattr("hybrid_runner.worker.loops.asyncio.sleep", sleep)
    await keep("the loop", run)
    assert (runs, pauses) == (4, [1, 2, 4])


async def test_a_loop_that_is_cancelled_ends() -> None:
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await keep("the loop", run)
    assert runs == 1


async def test_what_is_waited_for_until_a_deadline_says_whether_it_came() -> None:
    async def comes() -> None:
        await asyncio.sleep(0)

    assert await within(time.monotonic() + 120, comes())
    never = asyncio.Event()
    assert not await within(time.monotonic() - 1, never.wait())  # type: ignore[arg-type]  # it is awaited alone
