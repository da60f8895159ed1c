from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Fail,
    Finished,
    Outcome,
    Raised,
    Requeued,
    Retry,
    Settlement,
    Snooze,
    Stopped,
)
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.policy.settlement import decide

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def claimed(**changes: Any) -> Claim:
    claim = Claim(
        id=7,
        queue="default",
        kind="k",
        priority=5,
        payload="{}",
        data=None,
        key=None,
        run_at=NOW,
        max_attempts=3,
        timeout_seconds=None,
        finish_by=None,
        traceparent=None,
        attempt=1,
        number=70,
        started_at=NOW,
    )
    for name, value in changes.items():
        setattr(claim, name, value)
    return claim


def settled(outcome: Outcome, **changes: Any) -> Settlement:
    return decide(claimed(**changes), outcome, RetryPolicy(), now=NOW, chance=1.0)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Completed("1"), State.COMPLETED),
        (Fail("no"), State.FAILED),
        (Cancel("no"), State.CANCELLED),
    ],
)
def test_a_final_outcome_ends_the_job_whatever_attempts_are_left(
    outcome: Outcome, state: State
) -> None:
    settlement = settled(outcome)
    assert isinstance(settlement, Finished)
    assert settlement.state is state


@pytest.mark.parametrize(
    ("outcome", "delay", "charged", "why"),
    [
        (Raised("ValueError", "x"), 2.0, True, "retry"),
        (Retry(), 2.0, True, "retry"),
        (Retry(after="10s"), 10.0, True, "retry"),
        (Snooze(3), 3.0, False, "snooze"),
        (Snooze(NOW + timedelta(hours=1)), 3600.0, False, "snooze"),
        (
            Snooze(until=datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
            0.0,
            False,
            "snooze",
        ),
        (Snooze(until=NOW - timedelta(days=1)), 0.0, False, "snooze"),
        (Stopped.SHUTDOWN, 0.0, False, "release"),
    ],
)
def test_what_may_be_tried_again_goes_back(
    outcome: Outcome, delay: float, charged: bool, why: str
) -> None:
    settlement = settled(outcome)
    assert isinstance(settlement, Requeued)
    assert (settlement.delay.total_seconds(), settlement.charged, settlement.why) == (
        delay,
        charged,
        why,
    )


@pytest.mark.parametrize("outcome", [Raised("ValueError", "x"), Retry()])
def test_the_last_attempt_fails_the_job(outcome: Outcome) -> None:
    settlement = settled(outcome, attempt=3)
    assert isinstance(settlement, Finished)
    assert settlement.state is State.FAILED


@pytest.mark.parametrize("outcome", [Snooze(3), Stopped.SHUTDOWN])
def test_what_is_not_charged_never_uses_up_the_attempts(outcome: Outcome) -> None:
    assert isinstance(settled(outcome, attempt=3), Requeued)


def test_a_job_that_would_come_back_after_its_finish_by_fails_and_says_so() -> None:
    settlement = settled(Snooze("1h"), finish_by=NOW + timedelta(minutes=1))
    assert isinstance(settlement, Finished)
    assert settlement.state is State.FAILED
    assert "finish_by" in orjson.loads(settlement.error or "")["message"]


def test_memory_that_json_cannot_hold_fails_the_job() -> None:
    settlement = settled(Snooze(1, data=object()))
    assert isinstance(settlement, Finished)
    assert "the data of Snooze" in (settlement.error or "")


def test_an_error_is_storable_whatever_was_raised() -> None:
    settlement = settled(Raised("E", "nul \x00 surrogate \ud800" + "x" * 10_000, "t" * 100_000))
    assert isinstance(settlement, Requeued)
    entry = orjson.loads(settlement.error or "")
    assert "\x00" not in entry["message"]
    assert len(entry["message"]) <= 4096
    assert len(entry["traceback"]) <= 8000
