"""Whole runs of a handler that polls, with a moved clock: its values, its kind's pace and budgets
decide as they do in a worker. The outside system is a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Completed, Fail, HandlerOutcome, Snooze
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.policy.rules import Budgets, Rules
from hybrid_runner.policy.settlement import decide
from hybrid_runner.waiting.backoff import Backoff
from hybrid_runner.waiting.confirmations import Confirmations
from hybrid_runner.waiting.gate import Gate
from hybrid_runner.waiting.tries import Tries
from tests.support.jobs import a_claim
from tests.support.looks import MovedLook

RULES = Rules(
    pace=Backoff("2s", cap="30s", jitter=0.2),
    budgets=Budgets(max_snoozes=120, max_duration=timedelta(minutes=29)),
)


class Poll(BaseModel):
    idle: Confirmations = Confirmations(times=2, apart="15s")
    rows: Tries = Tries(most=6, pace=Backoff("1.5s", cap="8s"))
    probe: Gate = Gate(after="5s", every="15s")
    hinted: Gate = Gate(after="5s")
    stuck: Gate = Gate(after="3m")


Second = Callable[[float], Any]


@dataclass
class Outside:
    """What the outside system answers so many seconds after the start; an exception is a cut."""

    word: Second = lambda _: "running"
    hint: Second = lambda _: False
    running: Second = lambda _: True
    queryable: Second = lambda _: None
    probed: Second = lambda _: None
    asked: list[tuple[str, float]] = field(default_factory=list)

    def ask(self, what: str, second: float) -> Any:
        self.asked.append((what, round(second, 1)))
        answer = getattr(self, what)(second)
        if isinstance(answer, Exception):
            raise answer
        return answer


def look(outside: Outside, seen: Poll, job: MovedLook) -> HandlerOutcome | str:
    """What the handler says at one look."""
    at = job.elapsed.total_seconds()
    try:
        word = outside.ask("word", at)
        if "error" in word:
            return Fail(word)
        if seen.probe.opens(job) and outside.ask("probed", at) is not None:
            return "probe"
        if word == "complete":
            return rows(outside, seen, job)
        if (outside.hint(at) and seen.hinted.opens(job)) or seen.stuck.opens(job):
            if outside.ask("running", at):
                seen.idle.forget()
            elif seen.idle.confirm(job):
                return rows(outside, seen, job)
    except OSError as error:
        return Snooze(reason=str(error))
    return Snooze()


def rows(outside: Outside, seen: Poll, job: MovedLook) -> HandlerOutcome | str:
    if outside.ask("queryable", job.elapsed.total_seconds()) is not None:
        return "status"
    return seen.rows.again(job) or Fail(f"not queryable after {seen.rows.most} tries")


@dataclass
class Run:
    """How it ended."""

    by: str
    at: float
    looks: list[float]

    @property
    def pauses(self) -> list[float]:
        return [round(b - a, 2) for a, b in zip(self.looks, self.looks[1:], strict=False)]


def play(outside: Outside, chance: float = 0.5) -> Run:
    """Look until the job has ended; between two looks its memory is JSON."""
    job, memory, looks = MovedLook(chance), Poll().model_dump_json(), list[float]()
    claim: Claim = a_claim("poll")
    claim.began_at = job.began_at
    while True:
        looks.append(job.elapsed.total_seconds())
        seen = Poll.model_validate_json(memory)
        said = look(outside, seen, job)
        memory = seen.model_dump_json()
        outcome = Completed(said) if isinstance(said, str) else said
        now = job.began_at + job.elapsed
        match decide(claim, outcome, RULES, now=now, chance=chance):
            case Requeued(delay=delay):
                claim.snoozes += 1
                job.elapsed += delay
            case Finished(state=state, result=result, error=error):
                ended = state is State.COMPLETED
                by = str(result) if ended else orjson.loads(error or "")["message"]
                return Run(by, job.elapsed.total_seconds(), looks)
            case other:
                raise AssertionError(other)


def after(second: float, answer: Any, before: Any) -> Second:
    return lambda at: answer if at >= second else before


CHANCES = pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])


@CHANCES
def test_a_run_that_never_ends_fails_at_29_minutes_and_looks_once_more_then(chance: float) -> None:
    """B5: the time is authoritative, the message names budget, count and last reason."""
    run = play(Outside(word=lambda _: OSError("no route to host")), chance)
    assert run.at == run.looks[-1] == 29 * 60
    assert run.by == (
        f"max_duration (29m) is used up after {len(run.looks) - 1} snoozes: no route to host"
    )
    assert 60 <= len(run.looks) - 1 <= 78
    assert max(run.pauses) <= 30


def test_looks_double_from_2_s_to_30_s() -> None:
    """B4"""
    run = play(Outside(word=after(100, "complete", "running"), queryable=lambda _: 3))
    assert run.pauses[:6] == [2, 4, 8, 16, 27, 27]
    assert (run.by, run.at) == ("status", 111)


@CHANCES
def test_an_outcome_hinted_at_is_checked_twice_15_s_apart(chance: float) -> None:
    """B7, B9: the fallback check starts at the hint and not before 5 s."""
    outside = Outside(hint=lambda _: True, running=lambda _: False, queryable=lambda _: 7)
    run = play(outside, chance)
    checks = [at for what, at in outside.asked if what == "running"]
    assert run.by == "status"
    assert checks[0] >= 5
    assert run.at - checks[0] >= 15
    # the first look that is 15 s later, and no later one
    assert run.looks[-2] - checks[0] < 15


def test_running_again_forgets_what_was_confirmed() -> None:
    """B7: seen at 6 s, the contrary at 14 s, then twice anew."""
    outside = Outside(hint=lambda _: True, running=lambda at: 10 < at < 20, queryable=lambda _: 7)
    run = play(outside)
    assert [at for what, at in outside.asked if what == "running"] == [6, 14, 30, 57]
    assert (run.by, run.at) == ("status", 57)


def test_a_check_that_fails_is_neither_seen_nor_the_contrary() -> None:
    """B7, B10"""
    cut = OSError("connection reset")
    outside = Outside(
        hint=lambda _: True,
        running=lambda at: cut if 10 < at < 20 else False,
        queryable=lambda _: 7,
    )
    run = play(outside)
    assert (run.by, run.at) == ("status", 30)


def test_without_a_hint_it_is_checked_from_3_minutes_on() -> None:
    """B9: the stuck threshold."""
    outside = Outside(running=lambda _: False, queryable=lambda _: 7)
    run = play(outside)
    checks = [at for what, at in outside.asked if what == "running"]
    assert checks[0] == next(at for at in run.looks if at >= 180)
    assert (run.by, run.at) == ("status", run.looks[-1])
    assert run.at == checks[0] + 27


@CHANCES
def test_a_probe_ends_the_run_before_its_status_does(chance: float) -> None:
    """B9: not before 5 s, and 15 s apart."""
    outside = Outside(probed=after(60, 5, None))
    run = play(outside, chance)
    probes = [at for what, at in outside.asked if what == "probed"]
    assert run.by == "probe"
    assert run.at == run.looks[-1] >= 60
    assert probes[0] >= 5
    assert min(b - a for a, b in itertools.pairwise(probes)) >= 15


def test_rows_are_waited_for_six_times_and_then_the_run_has_failed() -> None:
    """B8"""
    run = play(Outside(word=after(6, "complete", "running")))
    assert run.pauses == [2, 4, 1.5, 3, 6, 7.2, 7.2, 7.2]
    assert run.by == "not queryable after 6 tries"


def test_rows_that_come_late_are_a_good_answer_and_so_are_none() -> None:
    """B8: zero rows mean nothing before the end, and are the answer after it."""
    complete = after(6, "complete", "running")
    assert play(Outside(word=complete, queryable=after(12, 40, None))).by == "status"
    assert play(Outside(word=complete, queryable=lambda _: 0)).by == "status"


@CHANCES
def test_an_error_of_the_outside_system_fails_the_run_at_once(chance: float) -> None:
    """B10"""
    run = play(Outside(word=after(40, "error: no such table", "running")), chance)
    assert run.by == "error: no such table"
    assert run.at == next(at for at in run.looks if at >= 40)


@CHANCES
def test_network_cuts_delay_and_do_not_fail(chance: float) -> None:
    """B10"""

    def word(at: float) -> Any:
        return OSError("cut") if 10 < at < 300 else ("complete" if at >= 300 else "running")

    assert play(Outside(word=word, queryable=lambda _: 1), chance).by == "status"


def test_a_hundred_and_twenty_snoozes_are_the_safety_net() -> None:
    """B5: of a handler that is faster than its pace."""
    job, claim = MovedLook(), a_claim("poll")
    claim.began_at = job.began_at
    while True:
        now = job.began_at + job.elapsed
        match decide(claim, Snooze("1s"), RULES, now=now, chance=0.5):
            case Requeued(delay=delay):
                claim.snoozes += 1
                job.elapsed += delay
            case Finished(error=error):
                assert orjson.loads(error or "")["message"] == (
                    "max_snoozes (120) is used up after 2m"
                )
                break
            case other:
                raise AssertionError(other)
