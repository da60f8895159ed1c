from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.outcomes import (
    Cancel,
    Completed,
    Fail,
    Left,
    Outcome,
    Raised,
    Repeat,
    Retry,
    RowUnread,
    Snooze,
    Stopped,
)
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.policy.rules import Budgets, Rules
from hybrid_runner.policy.settlement import decide
from hybrid_runner.waiting.backoff import Backoff

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


def settled_of(claim: Claim, outcome: Outcome) -> Settlement:
    return decide(claim, outcome, Rules(), now=NOW, chance=1.0)


def settled(outcome: Outcome, **changes: Any) -> Settlement:
    return decide(claimed(**changes), outcome, Rules(), now=NOW, chance=1.0)


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


def message_of(settlement: Settlement) -> tuple[str, str]:
    assert isinstance(settlement, Finished)
    assert settlement.state is State.FAILED
    entry = orjson.loads(settlement.error or "")
    return entry["type"], entry["message"]


def test_an_attempt_that_would_begin_after_finish_by_fails_the_job_and_says_so() -> None:
    settlement = settled(Retry("1h", "busy"), finish_by=NOW + timedelta(minutes=1))
    kind, message = message_of(settlement)
    assert kind == "FinishByPassed"
    assert message == "finish_by (2030-01-01T00:01:00+00:00) passes before the next attempt: busy"


def test_the_last_look_before_finish_by_is_a_second_before_it() -> None:
    """B5: not up to a whole delay earlier."""
    settlement = settled(Snooze("1h"), finish_by=NOW + timedelta(minutes=1))
    assert isinstance(settlement, Requeued)
    assert settlement.delay == timedelta(seconds=59)
    late = settled(Snooze("1h"), finish_by=NOW + timedelta(seconds=1))
    assert message_of(late)[0] == "FinishByPassed"


@pytest.mark.parametrize(
    ("own", "of_kind", "elapsed", "delay"),
    [
        (None, None, 10_000, 30.0),
        (1740.0, None, 0, 30.0),
        (1740.0, None, 1735, 5.0),
        (None, 1740.0, 1735, 5.0),
        (None, 1740.0, 1739.999, 0.001),
        (60.0, 1740.0, 50, 10.0),
        (7200.0, 1740.0, 3600, 30.0),
        (None, 1740.0, 1740, None),
        (None, 1740.0, 5000, None),
        (60.0, 1740.0, 60, None),
    ],
)
def test_max_duration_shortens_the_last_delay_so_that_the_last_look_is_at_the_deadline(
    own: float | None, of_kind: float | None, elapsed: float, delay: float | None
) -> None:
    """B5: what the job says itself counts before what its kind says; None: it is used up."""
    rules = Rules(
        budgets=Budgets(max_duration=None if of_kind is None else timedelta(seconds=of_kind))
    )
    claim = claimed(began_at=NOW - timedelta(seconds=elapsed), max_duration_seconds=own, snoozes=61)
    settlement = decide(claim, Snooze(30, reason="still running"), rules, now=NOW, chance=0.5)
    if delay is None:
        used_up = "1m" if own == 60 else "29m"
        assert message_of(settlement) == (
            "BudgetUsedUp",
            f"max_duration ({used_up}) is used up after 61 snoozes: still running",
        )
    else:
        assert isinstance(settlement, Requeued)
        assert settlement.delay.total_seconds() == pytest.approx(delay)


@pytest.mark.parametrize("outcome", [Retry("30s", "busy"), Raised("OSError", "cut")])
def test_max_duration_bounds_attempts_that_fail_as_well(outcome: Outcome) -> None:
    """B5, B10: also those of a worker that died."""
    budgets = Budgets(max_duration=timedelta(minutes=29))
    long_ago = claimed(began_at=NOW - timedelta(minutes=28, seconds=59.5))
    settlement = decide(long_ago, outcome, Rules(budgets=budgets), now=NOW, chance=1.0)
    assert isinstance(settlement, Requeued)
    assert settlement.delay == timedelta(seconds=0.5)
    over = claimed(began_at=NOW - timedelta(minutes=29))
    settlement = decide(over, outcome, Rules(budgets=budgets), now=NOW, chance=1.0)
    assert message_of(settlement)[0] == "BudgetUsedUp"


def test_what_was_raised_when_the_budget_was_used_up_is_kept() -> None:
    error = OSError("cut")
    settlement = decide(
        claimed(began_at=NOW - timedelta(minutes=1)),
        Raised("OSError", "cut", "Traceback …", error),
        Rules(budgets=Budgets(max_duration=timedelta(minutes=1))),
        now=NOW,
        chance=1.0,
    )
    assert isinstance(settlement, Finished)
    assert settlement.exception is error
    assert orjson.loads(settlement.error or "")["traceback"] == "Traceback …"


def test_max_duration_counts_from_the_start_of_the_first_attempt() -> None:
    claim = claimed(started_at=NOW - timedelta(seconds=50), max_duration_seconds=60.0)
    settlement = settled_of(claim, Snooze("1h"))
    assert isinstance(settlement, Requeued)
    assert settlement.delay == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("own", "of_kind", "snoozes", "goes_on"),
    [
        (None, None, 100_000, True),
        (None, 120, 119, True),
        (None, 120, 120, False),
        (5, 120, 4, True),
        (5, 120, 5, False),
        (0, None, 0, False),
    ],
)
def test_max_snoozes_bounds_how_often_a_handler_puts_its_job_back(
    own: int | None, of_kind: int | None, snoozes: int, goes_on: bool
) -> None:
    """B5: the safety net beside the time."""
    claim = claimed(
        snoozes=snoozes, max_snoozes=own, began_at=NOW - timedelta(minutes=29, seconds=1)
    )
    rules = Rules(budgets=Budgets(max_snoozes=of_kind))
    settlement = decide(claim, Snooze(1, reason="not yet"), rules, now=NOW, chance=0.5)
    if goes_on:
        assert isinstance(settlement, Requeued)
    else:
        allowed = of_kind if own is None else own
        assert message_of(settlement) == (
            "BudgetUsedUp",
            f"max_snoozes ({allowed}) is used up after 29m1s: not yet",
        )


@pytest.mark.parametrize(("outcome", "goes_on"), [(Stopped.SHUTDOWN, True), (Retry(), True)])
def test_only_snoozes_count_as_snoozes(outcome: Outcome, goes_on: bool) -> None:
    settlement = settled(outcome, max_snoozes=0)
    assert isinstance(settlement, Requeued) is goes_on


def test_finish_within_counts_from_when_the_job_was_first_due() -> None:
    """And is written down with the first delay, since `run_at` moves with each."""
    within = Rules(budgets=Budgets(finish_within=timedelta(minutes=10)))
    claim = claimed(run_at=NOW - timedelta(minutes=2))
    settlement = decide(claim, Snooze("1h"), within, now=NOW, chance=0.5)
    assert isinstance(settlement, Requeued)
    assert settlement.finish_by == NOW + timedelta(minutes=8)
    assert settlement.delay == timedelta(minutes=8) - timedelta(seconds=1)
    released = decide(claim, Stopped.SHUTDOWN, within, now=NOW, chance=0.5)
    assert isinstance(released, Requeued)
    assert released.finish_by == NOW + timedelta(minutes=8)
    own = claimed(run_at=NOW, finish_within_seconds=60.0)
    settlement = decide(own, Snooze("1h"), within, now=NOW, chance=0.5)
    assert isinstance(settlement, Requeued)
    assert settlement.delay == timedelta(seconds=59)


def test_a_snooze_without_a_delay_goes_by_the_pace_of_the_kind() -> None:
    """B4: 2 s, doubling, at most 30 s, spread by a fifth."""
    pace = Rules(pace=Backoff("2s", cap="30s", jitter=0.2))

    def delay(snoozes: int, chance: float) -> float:
        claim = claimed(snoozes=snoozes)
        settlement = decide(claim, Snooze(), pace, now=NOW, chance=chance)
        assert isinstance(settlement, Requeued)
        return settlement.delay.total_seconds()

    assert [delay(n, 0.5) for n in range(4)] == pytest.approx([2, 4, 8, 16])
    assert (delay(0, 0.0), delay(0, 1.0)) == pytest.approx((1.6, 2.4))
    assert (delay(9, 0.0), delay(9, 1.0)) == pytest.approx((24, 30))
    assert delay(10_000, 1.0) == pytest.approx(30)


def test_the_reason_of_a_snooze_is_kept_and_not_charged() -> None:
    """B10: a network error is warned about."""
    settlement = settled(Snooze(1, reason="status: connection refused"))
    assert isinstance(settlement, Requeued)
    assert not settlement.charged
    entry = orjson.loads(settlement.error or "")
    assert (entry["type"], entry["message"]) == ("Snooze", "status: connection refused")


def test_memory_that_the_handler_changed_is_stored_unless_it_says_what_it_is() -> None:
    """B3."""
    left = Left(data='{"seen": 2}')
    changed = decide(claimed(), Snooze(1), Rules(), now=NOW, chance=0.5, left=left)
    assert isinstance(changed, Requeued)
    assert changed.data == '{"seen": 2}'
    said = decide(claimed(), Snooze(1, data=[]), Rules(), now=NOW, chance=0.5, left=left)
    assert isinstance(said, Requeued)
    assert said.data == "[]"


FOLLOW_UP = NewJob("next")


@pytest.mark.parametrize(
    ("outcome", "follow_ups"),
    [
        (Completed("1"), (FOLLOW_UP,)),
        (Repeat("1h"), (FOLLOW_UP,)),
        (Fail("no"), ()),
        (Fail("no", NewJob("tidy")), (NewJob("tidy"),)),
        (Fail("no", [NewJob("tidy"), FOLLOW_UP]), (NewJob("tidy"), FOLLOW_UP)),
        (Cancel("no"), ()),
    ],
)
def test_follow_ups_are_stored_with_an_end_that_is_no_error_or_as_fail_says(
    outcome: Outcome, follow_ups: tuple[NewJob, ...]
) -> None:
    """B1."""
    left = Left(follow_ups=(FOLLOW_UP,))
    settlement = decide(claimed(), outcome, Rules(), now=NOW, chance=0.5, left=left)
    assert not isinstance(settlement, Requeued)
    assert settlement.follow_ups == follow_ups


def test_a_repeat_starts_all_anew_but_a_finish_by_of_the_job() -> None:
    until = NOW + timedelta(days=1)
    settlement = settled(Repeat("1h", data={"n": 1}), attempt=3, finish_by=until)
    assert settlement == Repeated(settlement.claim, timedelta(hours=1), '{"n":1}', finish_by=until)
    of_within = settled(Repeat("1h"), finish_by=until, finish_within_seconds=90_000.0)
    assert isinstance(of_within, Repeated)
    assert of_within.finish_by is None


def test_a_run_after_which_finish_by_passes_is_the_last_and_completes_the_job() -> None:
    """Not failed: all that was to be done by then is done."""
    until = NOW + timedelta(hours=1)
    left = Left(follow_ups=(FOLLOW_UP,))
    claim = claimed(finish_by=until)
    settlement = decide(claim, Repeat("1h"), Rules(), now=NOW, chance=0.5, left=left)
    assert settlement == Finished(claim, State.COMPLETED, result="null", follow_ups=(FOLLOW_UP,))
    assert isinstance(settled(Repeat("59m"), finish_by=until), Repeated)


def test_a_repeat_that_waits_for_a_signal_has_its_last_run_when_finish_by_comes() -> None:
    """Till then it can be woken."""
    until = NOW + timedelta(hours=1)
    waits = settled(Repeat("2h", wake_on="k"), finish_by=until)
    assert waits == Repeated(
        waits.claim, timedelta(minutes=59, seconds=59), finish_by=until, wake_on="k"
    )
    over = settled(Repeat("2h", wake_on="k"), finish_by=NOW + timedelta(seconds=1))
    assert isinstance(over, Finished)
    assert over.state is State.COMPLETED
    soon = settled(Repeat("1s", wake_on="k"), finish_by=until)
    assert isinstance(soon, Repeated)
    assert soon.delay == timedelta(seconds=1)


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


@pytest.mark.parametrize(
    ("tried", "pause"), [(0, 1), (1, 1), (10, 5), (100, 50), (3600, 60), (-60, 1)]
)
def test_a_row_that_cannot_be_read_is_tried_again_after_pauses_that_grow(
    tried: float, pause: float
) -> None:
    """Uncharged; for half as long as was tried, a minute at most."""
    began = NOW - timedelta(seconds=tried)
    back = settled(RowUnread("no such column"), began_at=began, attempt=3)
    assert isinstance(back, Requeued)
    assert (back.charged, back.why, back.delay) == (False, "release", timedelta(seconds=pause))
    entry = orjson.loads(back.error or "")
    assert (entry["type"], entry["message"]) == ("RowUnread", "no such column")


def test_a_row_that_cannot_be_read_until_finish_by_fails_its_job() -> None:
    end = settled(RowUnread("no such column"), finish_by=NOW + timedelta(milliseconds=500))
    assert isinstance(end, Finished)
    assert message_of(end)[0] == "FinishByPassed"
