"""E8: the breaker and the adaptive interval of a loop, and what is told and logged of changes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, RunnerError
from hybrid_runner.resilience import Adapt, AdaptiveScheduler, Breaker, Change
from tests.resilience.loops import Noted
from tests.support.moved_clock import MovedClock, MovedTimer

LOST = OSError("no route")


# --- the breaker


async def test_a_breaker_stops_the_loop_for_its_cooldown_and_lets_one_run_through(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E8"""
    noted = Noted(clock, False, False, False, False, True)
    scheduler.schedule("it", noted, 1, breaker=Breaker(failures=3, cooldown="60s"))
    await clock.forward(200)
    # 1, 3 and 7 open it; 67 and 127 are probes, of which the second one closes it.
    assert noted.at[:7] == [1, 3, 7, 67, 127, 128, 129]


async def test_a_breaker_does_not_make_a_loop_faster_than_its_backoff(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E8"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 100, breaker=Breaker(failures=2, cooldown="1s"))
    await clock.forward(1500)
    assert noted.at == [100, 300, 700, 1500]


async def test_trigger_is_refused_while_the_breaker_is_open_and_is_the_probe_afterwards(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7, E8"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 100, breaker=Breaker(failures=1, cooldown="10s"))
    await clock.forward(109.9)
    assert not scheduler.trigger("it")
    await clock.forward(0.1)
    assert scheduler.trigger("it")
    await clock.forward(9.9)
    assert not scheduler.trigger("it"), "the probe failed: a cool-down again"
    assert noted.at == [100, 110]


async def test_reset_closes_the_breaker(scheduler: AdaptiveScheduler, clock: MovedClock) -> None:
    """E7, E8"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 1, breaker=Breaker(failures=1, cooldown="1h"))
    await clock.forward(1.5)
    scheduler.reset_backoff("it")
    await clock.forward(0.5)
    assert noted.at == [1, 2]


async def test_a_resume_does_not_wake_a_loop_whose_breaker_is_open(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5, E8"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 1, breaker=Breaker(failures=1, cooldown="60s"))
    await clock.forward(1)
    scheduler.pause()
    await clock.forward(30)
    scheduler.resume()
    await clock.forward(29.9)
    assert noted.at == [1]
    await clock.forward(0.1)
    assert noted.at == [1, 61]


async def test_a_timer_that_goes_off_a_moment_before_the_cooldown_is_over_is_set_again() -> None:
    """E8: an event loop's timers may be early by what its clock cannot tell apart"""

    class Early(MovedClock):
        by = timedelta(0)

        def call_later(self, delay: timedelta, call: Callable[[], None]) -> MovedTimer:
            return super().call_later(max(timedelta(0), delay - self.by), call)

    early = Early()
    noted = Noted(early, False)
    async with AdaptiveScheduler(clock=early) as scheduler:
        scheduler.schedule("it", noted, 1, breaker=Breaker(failures=1, cooldown="10s"))
        await early.forward(0.5)
        early.by = timedelta(milliseconds=1)
        await early.forward(0.5)
        early.by = timedelta(0)
        await early.forward(10)
        state = scheduler.backoff_state("it")
    assert noted.at == [1, 11]
    assert state is not None
    assert state.failures == 2


async def test_a_skipped_run_is_no_probe(
    scheduler: AdaptiveScheduler, clock: MovedClock, changes: list[Change]
) -> None:
    """E8"""
    noted = Noted(clock, False, True)
    condition = Noted(clock, True, False, True)
    scheduler.schedule("it", noted, 1, condition, breaker=Breaker(failures=1, cooldown="10s"))
    await clock.forward(13)
    assert (condition.at, noted.at) == ([1, 11, 13], [1, 13])
    modes = [change.breaker for change in changes if change.what == "breaker"]
    assert modes == ["open", "half_open", "closed"]


async def test_a_cancelled_probe_is_followed_by_another_one_a_cooldown_later(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E8: a probe that was lost blocks for a while, and not for ever"""
    noted = Noted(clock, False, asyncio.CancelledError(), True)
    scheduler.schedule("it", noted, 1, breaker=Breaker(failures=1, cooldown="10s"))
    await clock.forward(23)
    assert noted.at == [1, 11, 21, 22, 23]


# --- intervals that adapt


async def test_the_interval_follows_how_often_the_data_changes(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E8"""
    noted = Noted(clock, "a", "a", "a", "a", "b", "c", "d", "e", "e")
    scheduler.schedule("it", noted, 10, adapt=Adapt(shortest="5s", longest="40s", factor=2))
    await clock.forward(185)
    assert noted.at == [10, 20, 40, 80, 120, 140, 150, 155, 160, 170]


async def test_true_and_none_say_nothing_of_the_data(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E8"""
    noted = Noted(clock, "a", True, None, "a", True)
    scheduler.schedule("it", noted, 10, adapt=Adapt("1s", "1h", factor=2))
    await clock.forward(70)
    assert noted.at == [10, 20, 30, 40, 60]


async def test_failures_multiply_the_adapted_interval(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E2, E3, E8"""
    noted = Noted(clock, "a", "a", False, False, "a")
    scheduler.schedule("it", noted, 1, adapt=Adapt("1s", "3s", factor=3))
    await clock.forward(30)
    assert noted.at == [1, 2, 5, 11, 23, 26, 29]


async def test_what_cannot_be_compared_is_a_failure(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4, E8"""

    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    scheduler.schedule("it", Odd, 1, adapt=Adapt("1s", "3s"))
    await clock.forward(2)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert state.failures == 1


async def test_a_comparison_that_is_neither_true_nor_false_is_a_failure_and_ends_no_loop(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4, E8: arrays compare to arrays."""

    class Answers:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    class Array:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> Answers:  # type: ignore[override]
            return Answers()

        __ne__ = __eq__  # type: ignore[assignment]

    noted = Noted(clock, Array(), Array(), Array(), "a")
    scheduler.schedule("it", noted, 1, adapt=Adapt("1s", "3s"))
    await clock.forward(8)
    assert noted.at == [1, 2, 4, 8]


# --- changes, and the log


async def test_changes_of_state_are_told_and_repetitions_are_not(
    scheduler: AdaptiveScheduler, clock: MovedClock, changes: list[Change]
) -> None:
    """E8"""
    noted = Noted(clock, True, LOST, False, False, False, False, True)
    scheduler.schedule("it", noted, 1)
    await clock.forward(34)
    scheduler.pause()
    scheduler.resume()
    await scheduler.close()
    told = [(change.what, change.name, change.failures, change.pause) for change in changes]
    assert [(what, name, failures, pause.seconds) for what, name, failures, pause in told] == [
        ("scheduled", "it", 0, 1),
        ("failing", "it", 1, 2),
        ("failing", "it", 2, 4),
        ("failing", "it", 3, 8),
        ("recovered", "it", 5, 1),
        ("paused", "", 0, 0),
        ("resumed", "", 0, 0),
        ("closed", "", 0, 0),
    ]
    assert [change.error for change in changes if change.what == "failing"] == [LOST, None, None]


async def test_changes_of_state_are_logged(
    scheduler: AdaptiveScheduler, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E8"""
    caplog.set_level(logging.DEBUG, "hybrid_runner.resilience")
    noted = Noted(clock, LOST, False, "a", "b")
    breaker, adapt = Breaker(failures=2, cooldown="60s"), Adapt("1s", "1h")
    scheduler.schedule("a\nb", noted, "1m", breaker=breaker, adapt=adapt)
    await clock.forward(600)
    scheduler.pause()
    scheduler.resume()
    scheduler.schedule("bad", Noted(clock, False), 1)
    await clock.forward(1)
    scheduler.reset_backoff("bad")
    await scheduler.close()
    lines = [(record.levelname, record.message) for record in caplog.records]
    assert lines[:6] == [
        ("DEBUG", "a b runs every 1m"),
        ("WARNING", "a b failed, 1 in a row: OSError: no route; again in 2m"),
        ("WARNING", "a b failed, 2 in a row: it returned False; again in 4m"),
        ("WARNING", "the breaker of a b is open now"),
        ("INFO", "the breaker of a b is half-open now"),
        ("INFO", "a b works again after 2 failures; it runs every 1m"),
    ]
    assert lines[6:8] == [
        ("INFO", "the breaker of a b is closed now"),
        ("DEBUG", "a b runs every 40s now"),
    ]
    assert [line for line in lines[8:] if line[0] != "DEBUG"] == [
        ("INFO", "all loops are paused"),
        ("INFO", "all loops are resumed"),
        ("WARNING", "bad failed, 1 in a row: it returned False; again in 2s"),
        ("INFO", "the failures of bad are forgotten; again in 1s"),
    ]
    assert [bool(record.exc_info) for record in caplog.records[:3]] == [False, True, False]
    assert vars(caplog.records[1])["event"] == "scheduler.failing"


async def test_the_first_failure_is_told_also_if_it_changes_no_pause(
    clock: MovedClock, changes: list[Change]
) -> None:
    """E8"""
    noted = Noted(clock, False, False, True)
    async with AdaptiveScheduler(clock=clock, cap=1, on_change=changes.append) as scheduler:
        scheduler.schedule("it", noted, 1)
        await clock.forward(3)
    told = [(change.what, change.failures) for change in changes if change.name]
    assert told == [("scheduled", 0), ("failing", 1), ("recovered", 2)]


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [(OSError("lost"), True), (TimeoutError(), False), (RunnerError("lost"), False)],
    ids=repr,
)
async def test_where_it_failed_is_logged_once_for_failures_that_nobody_has_foreseen(
    scheduler: AdaptiveScheduler,
    clock: MovedClock,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    is_traced: bool,
) -> None:
    """E8: with the first of them in a row"""
    scheduler.schedule("it", Noted(clock, error), 1, breaker=Breaker(failures=1, cooldown="1s"))
    await clock.forward(3)
    lines = [
        (vars(record)["event"], vars(record)["failures"], bool(record.exc_info))
        for record in caplog.records
        if record.levelno == logging.WARNING
    ]
    assert lines == [
        ("scheduler.failing", 1, is_traced),
        ("scheduler.breaker", 1, False),
        ("scheduler.failing", 2, False),
        ("scheduler.breaker", 2, False),
    ]
    assert {vars(record)["loop"] for record in caplog.records} == {"it"}


async def test_a_line_of_the_log_is_bounded_whatever_a_run_raises(
    scheduler: AdaptiveScheduler, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E8"""
    scheduler.schedule("it", Noted(clock, RunnerError("x" * 100_000)), 1)
    await clock.forward(1)
    assert [len(record.message) for record in caplog.records] == [1000]


async def test_a_listener_that_raises_stops_nothing(
    clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E8"""

    def refuse(_: Change) -> None:
        raise LOST

    noted = Noted(clock, False, True)
    async with AdaptiveScheduler(clock=clock, on_change=refuse) as scheduler:
        scheduler.schedule("it", noted, 1)
        await clock.forward(4)
    assert noted.at == [1, 3, 4]
    assert "on_change failed; the loops go on" in caplog.text


async def test_a_run_has_the_context_of_whoever_scheduled_it(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7: and not that of a request that triggers it"""
    variable = contextvars.ContextVar("variable", default="nothing")
    seen = []

    def look() -> None:
        seen.append(variable.get())
        variable.set("a run before")

    variable.set("scheduled")
    scheduler.schedule("it", look, 1)
    variable.set("a request")
    scheduler.trigger("it")
    await clock.forward(2)
    assert seen == ["scheduled"] * 3


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": ""}, "name must be a text of 1 to 200 characters, not ''"),
        ({"name": "x" * 201}, "name must be a text of 1 to 200 characters"),
        ({"name": 7}, "name must be a text of 1 to 200 characters, not 7"),
        ({"fn": "it"}, "fn must be a function, which is called later, not 'it'"),
        ({"condition": True}, "condition must be a function, which is called later, not True"),
        ({"interval": 0}, "interval must be more than zero"),
        ({"interval": "soon"}, "interval: 'soon' is not a duration"),
        ({"interval": 0.0001}, "interval must be 1 ms or more"),
        ({"interval": None}, "interval: None is not a duration"),
        ({"jitter": 1}, "jitter must be at least 0 and less than 1, such as 0.2, not 1"),
        ({"jitter": True}, "jitter must be at least 0 and less than 1, such as 0.2, not True"),
        ({"jitter": float("nan")}, "jitter must be at least 0 and less than 1"),
        ({"breaker": 10}, r"breaker must be Breaker\(…\) or None, not 10"),
        ({"adapt": "5s"}, r"adapt must be Adapt\(…\) or None, not '5s'"),
        ({"adapt": Adapt("2s", "9s")}, "interval must be within that of adapt, 2s to 9s, not 1s"),
        ({"adapt": Adapt("0.1s", "0.5s")}, r"interval must be .* adapt, 0\.1s to 0\.5s, not 1s"),
        ({"while_paused": 0}, "while_paused must be more than zero"),
        ({"timeout": -1}, "timeout must be more than zero"),
        ({"timeout": "x"}, "timeout: 'x' is not a duration"),
    ],
)
async def test_a_bad_argument_of_schedule_is_refused_in_one_line_that_names_it(
    scheduler: AdaptiveScheduler, arguments: dict[str, Any], said: str
) -> None:
    """E1"""
    usual = {"name": "it", "fn": lambda: None, "interval": 1}
    with pytest.raises(ConfigurationError, match=f"^{said}") as refused:
        scheduler.schedule(**{**usual, **arguments})
    assert "\n" not in str(refused.value)
    assert scheduler.backoff_state("it") is None


async def test_the_limits_of_what_may_be_given_may_be_given(clock: MovedClock) -> None:
    """E1, E8"""
    async with AdaptiveScheduler(clock=clock, cap=1000, factor=1000) as scheduler:
        scheduler.schedule("x" * 200, lambda: None, 1, adapt=Adapt("1ms", "1s", factor=100))
        scheduler.schedule("y", lambda: None, "1ms", adapt=Adapt("1ms", "1s"), jitter=0.999)
        assert clock.timers == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"cap": 0.5}, "cap must be between 1 and 1000, not 0.5"),
        ({"cap": "8"}, "cap must be between 1 and 1000, not '8'"),
        ({"factor": float("inf")}, "factor must be between 1 and 1000, not inf"),
        ({"jitter": -0.1}, "jitter must be at least 0 and less than 1"),
        ({"stagger": "later"}, "stagger: 'later' is not a duration"),
        ({"on_change": "log"}, "on_change must be a function"),
        ({"chance": 0.5}, "chance must be a function"),
    ],
)
def test_a_bad_argument_of_the_scheduler_is_refused_in_one_line_that_names_it(
    arguments: dict[str, Any], said: str
) -> None:
    """E8"""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        AdaptiveScheduler(**arguments)


async def test_a_bad_grace_is_refused_and_closes_nothing(scheduler: AdaptiveScheduler) -> None:
    """E7"""
    scheduler.schedule("it", lambda: None, 1)
    with pytest.raises(ConfigurationError, match=r"^grace: 'x' is not a duration"):
        await scheduler.close("x")
    assert scheduler.trigger("it")


def test_without_an_event_loop_schedule_says_so() -> None:
    """E1"""
    with pytest.raises(ConfigurationError, match="while an event loop runs"):
        AdaptiveScheduler().schedule("it", lambda: None, 1)


async def test_the_usual_clock_is_the_event_loops() -> None:
    """E1"""
    ran = asyncio.Event()
    async with AdaptiveScheduler() as scheduler:
        scheduler.schedule("it", ran.set, "1ms", timeout="10s")
        await ran.wait()
        state = scheduler.backoff_state("it")
    assert state is not None
    assert state.failures == 0
