"""What a supervisor decides, without a process: when to start one again, what an end means, what
the pages say.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner.supervisor.reports import ProcessView, fleet_health, fleet_ready
from hybrid_runner.supervisor.restarts import (
    as_shell,
    deaths_in_a_row,
    describe_end,
    is_refusal,
    pause_after,
)


def test_restarts_pause_1_s_and_double_up_to_30_s() -> None:
    assert [pause_after(deaths).total_seconds() for deaths in range(1, 9)] == [
        1,
        2,
        4,
        8,
        16,
        30,
        30,
        30,
    ]


@pytest.mark.parametrize(
    ("before", "lived", "deaths"), [(0, 0, 1), (1, 0.1, 2), (5, 59.9, 6), (5, 60, 1), (0, 3600, 1)]
)
def test_who_lived_a_minute_starts_from_the_shortest_pause(
    before: int, lived: float, deaths: int
) -> None:
    assert deaths_in_a_row(before, timedelta(seconds=lived)) == deaths


@pytest.mark.parametrize(
    ("code", "has_worked", "fleet_has_worked", "refused"),
    [
        (1, False, False, True),
        (2, False, False, True),
        (0, False, False, False),
        (3, False, False, False),
        (-9, False, False, False),
        (1, True, False, False),
        (1, False, True, False),
    ],
)
def test_only_a_child_that_never_worked_in_a_fleet_that_never_worked_is_a_refusal(
    code: int, has_worked: bool, fleet_has_worked: bool, refused: bool
) -> None:
    assert is_refusal(code, has_worked=has_worked, fleet_has_worked=fleet_has_worked) is refused


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was ended by SIGKILL"),
        (-11, "was ended by SIGSEGV"),
        (-40, "was ended by signal 40"),
    ],
)
def test_an_end_is_said_in_words(code: int, words: str) -> None:
    assert describe_end(code) == words


@pytest.mark.parametrize(("code", "said"), [(0, 0), (1, 1), (131, 131), (-9, 137), (-15, 143)])
def test_an_end_is_the_exit_code_that_a_shell_would_give(code: int, said: int) -> None:
    assert as_shell(code) == said


SAID = {"healthy": True, "phase": "running", "version": "1", "checks": [], "worker": {"id": "w"}}
GONE = SAID | {
    "healthy": False,
    "checks": [{"name": "postgres", "ok": False, "severity": "failed", "reason": "it is away"}],
}
DEAF = SAID | {
    "healthy": False,
    "checks": [{"name": "listener", "ok": False, "severity": "failed", "reason": "deaf"}],
}
WELL = ProcessView(1, 11, 0, SAID, 0.5)


@pytest.mark.parametrize(
    ("view", "stopping", "healthy", "ready", "reason"),
    [
        (ProcessView(2, 12, 3, SAID, 9.9), False, True, True, "lives"),
        (ProcessView(2, 12, 0, SAID, 10.0), False, False, False, "nothing for 10 s"),
        (ProcessView(2, 12, 0, None, 59.0), False, True, False, "lives"),
        (ProcessView(2, 12, 0, None, 61.0), False, False, False, "nothing for 61 s"),
        (
            ProcessView(2, None, 1, None, 0.0, "was ended by SIGKILL"),
            False,
            False,
            False,
            "was ended by SIGKILL",
        ),
        (ProcessView(2, None, 0, None, 0.0), False, True, False, "not started"),
        (ProcessView(2, None, 0, None, 0.0), True, True, False, "asked to stop"),
        (ProcessView(2, 12, 0, GONE, 0.5), False, False, False, "lives"),
        (ProcessView(2, 12, 0, DEAF, 0.5), False, False, True, "lives"),
        (ProcessView(2, 12, 0, SAID | {"phase": "starting"}, 0.5), False, True, False, "lives"),
    ],
)
def test_all_are_healthy_and_ready_if_each_is(
    view: ProcessView, stopping: bool, healthy: bool, ready: bool, reason: str
) -> None:
    health = fleet_health([WELL, view], stopping=stopping)
    assert health["healthy"] is healthy
    assert [child["healthy"] for child in health["processes"]] == [True, healthy]
    assert reason in health["processes"][1]["checks"][0]["reason"]
    assert fleet_ready([WELL, view], stopping=stopping)["ready"] is ready


def test_ready_says_which_process_takes_no_jobs_and_why() -> None:
    assert fleet_ready([WELL, ProcessView(2, 12, 0, GONE, 0.5)], stopping=False) == {
        "ready": False,
        "phase": "running",
        "reason": "process 2: it is away",
        "running": 1,
        "processes": 2,
    }


def test_nothing_is_ready_while_all_stop() -> None:
    assert fleet_ready([WELL], stopping=True) == {
        "ready": False,
        "phase": "stopping",
        "running": 1,
        "processes": 1,
    }
