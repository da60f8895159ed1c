"""B14: what waiting jobs do is counted by kind and field, without code of the application's."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import BatchSettled
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued, Settlement
from hybrid_runner.model.uses import Uses
from hybrid_runner.policy.settlement import error_text
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.counters import Counters
from hybrid_runner.telemetry.metrics.values import MetricValues
from tests.support.jobs import a_claim

LOOK: Uses = {("opened", "probe"): 1, ("seen", "idle"): 1, ("again", "rows"): 2, ("opened", ""): 1}


def poll(uses: Uses | None = None) -> Claim:
    claim = a_claim(kind="poll")
    claim.uses = uses
    return claim


def counted(*settlements: Settlement) -> MetricValues:
    counters = Counters([], [])
    counters.waiting.start_series("poll", [("opened", "probe"), ("confirmed", "idle")])
    counters.on_settled(BatchSettled(settlements, (), 0.0, 0.1))
    return counters.metric_values()


def snoozed(claim: Claim) -> Requeued:
    return Requeued(claim, a_claim().pickup, charged=False, why="snooze")


def failed(error_type: str, message: str) -> Finished:
    claim = poll()
    return Finished(
        claim, State.FAILED, error=error_text(claim, claim.started_at, error_type, message)
    )


def test_uses_of_a_look_are_counted_by_kind_and_field() -> None:
    """B14"""
    values = counted(snoozed(poll(LOOK)), snoozed(poll(LOOK)), snoozed(poll()))
    assert values[table.GATES_OPENED.name] == {("poll", "probe"): 2, ("poll", "(other)"): 2}
    assert values[table.CONFIRMATIONS.name] == {
        ("poll", "idle", "confirmed"): 0,
        ("poll", "idle", "seen"): 2,
    }
    assert values[table.TRIES.name] == {("poll", "rows", "again"): 4}
    assert values[table.GATE_ENDINGS.name] == {("poll", "probe"): 0}


@pytest.mark.parametrize(
    ("state", "ended"), [(State.COMPLETED, 1), (State.FAILED, 0), (State.CANCELLED, 0)]
)
def test_a_job_that_completes_at_a_look_that_a_gate_opened_is_a_fast_ending(
    state: Any, ended: int
) -> None:
    """B14"""
    values = counted(Finished(poll({("opened", "probe"): 1}), state))
    assert values[table.GATE_ENDINGS.name]["poll", "probe"] == ended
    assert values[table.GATES_OPENED.name]["poll", "probe"] == 1


def test_an_ending_is_that_of_the_gate_that_opened_last() -> None:
    """B14: the probe before it has found nothing."""
    uses: Uses = {("opened", "probe"): 1, ("opened", "hinted"): 1, ("confirmed", "idle"): 1}
    values = counted(Finished(poll(uses), State.COMPLETED))
    assert values[table.GATE_ENDINGS.name] == {("poll", "probe"): 0, ("poll", "hinted"): 1}


@pytest.mark.parametrize(
    ("error_type", "message", "budget"),
    [
        ("BudgetUsedUp", "max_duration (29m) is used up after 61 snoozes: busy", "max_duration"),
        ("BudgetUsedUp", "max_snoozes (120) is used up after 3m", "max_snoozes"),
        ("FinishByPassed", "finish_by (2030-01-01) passes before the next attempt", "finish_by"),
        ("BudgetUsedUp", "another exception of that name", None),
        ("BudgetUsedUp", "", None),
        ("ValueError", '{"type":"BudgetUsedUp"} max_snoozes', None),
        ("Fail", "max_duration is used up", None),
    ],
)
def test_a_budget_that_is_used_up_is_counted_by_its_name(
    error_type: str, message: str, budget: str | None
) -> None:
    """B14: time-outs. No label is made of what a handler says."""
    values = counted(failed(error_type, message))[table.BUDGETS_USED_UP.name]
    assert values == ({} if budget is None else {("poll", budget): 1})


def test_an_error_that_is_longer_than_usual_is_read_as_it_is_stored() -> None:
    """B14"""
    long = failed("BudgetUsedUp", "max_snoozes (1) is used up: " + "x" * 10_000)
    assert orjson.loads(long.error or "")["type"] == "BudgetUsedUp"
    assert counted(long)[table.BUDGETS_USED_UP.name] == {("poll", "max_snoozes"): 1}


def test_budgets_that_were_used_up_when_a_worker_died_are_counted_with_the_others() -> None:
    """B14"""
    counters = Counters([], [])
    used_up = failed("BudgetUsedUp", "max_duration (29m) is used up after 3 snoozes")
    counters.on_rescued([used_up, used_up])
    counters.on_settled(BatchSettled([used_up], (), 0.0, 0.1))
    assert counters.metric_values()[table.BUDGETS_USED_UP.name] == {("poll", "max_duration"): 3}
