"""What becomes of a job whose stored memory does not fit its handler (B18)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Refused, Snooze
from hybrid_runner.policy.rules import Budgets
from hybrid_runner.policy.unfit_memory import PATIENCE, outcome_of_unfit_memory

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
FIRST = Claim(1, "q", "k", 5, "{}", "[]", None, BEGAN, 5, None, None, None, 1, 1, BEGAN)
LATER = replace(FIRST, started_at=BEGAN + timedelta(hours=2), began_at=BEGAN)
REASON = "the job has data that does not fit Poll: task: Field required"
NOT_YET, PAST = PATIENCE - timedelta(seconds=1), PATIENCE


@pytest.mark.parametrize(
    ("claim", "budgets", "after", "snoozes"),
    [
        (FIRST, Budgets(), timedelta(0), True),
        (FIRST, Budgets(), NOT_YET, True),
        (FIRST, Budgets(), PAST, False),
        (LATER, Budgets(), timedelta(hours=2), False),  # from the first attempt, not from this one
        (LATER, Budgets(max_snoozes=9), timedelta(hours=2), True),  # as long as a budget lasts
        (LATER, Budgets(max_duration=timedelta(days=1)), timedelta(hours=2), True),
        (LATER, Budgets(finish_within=timedelta(days=1)), timedelta(hours=2), True),
        (replace(LATER, max_snoozes=9), Budgets(), timedelta(hours=2), True),
        (replace(LATER, max_duration_seconds=1e6), Budgets(), timedelta(hours=2), True),
        (replace(LATER, finish_by=BEGAN + timedelta(days=1)), Budgets(), PAST, True),
        (replace(FIRST, data=None), Budgets(max_snoozes=9), timedelta(0), False),  # nothing to wait
    ],
)
def test_it_is_tried_again_while_it_may_go_on(
    claim: Claim, budgets: Budgets, after: timedelta, *, snoozes: bool
) -> None:
    """Without any budget for an hour from its beginning; what has no data fails at once."""
    outcome = outcome_of_unfit_memory(claim, budgets, REASON, now=BEGAN + after)
    if snoozes:
        assert isinstance(outcome, Snooze)
        assert (outcome.delay, outcome.until, outcome.reason) == (None, None, REASON)
    else:
        assert outcome == Refused("DataRefused", REASON)
