"""What becomes of a job whose stored memory does not fit its handler: a deploy may have changed the
type, and the next one, or a worker that has the other version, may read it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Refused, Snooze
from hybrid_runner.policy.rules import Budgets, finish_by, max_duration, max_snoozes

PATIENCE = timedelta(hours=1)
"""So long after its beginning a job is tried that has no budget."""


def outcome_of_unfit_memory(
    claim: Claim, budgets: Budgets, reason: str, *, now: datetime
) -> Snooze | Refused:
    """Snoozed by its kind's pace while its budget lasts; refused if there is none to read."""
    if claim.data is None:
        return Refused("DataRefused", reason)
    is_bounded = (
        max_snoozes(claim, budgets) is not None
        or max_duration(claim, budgets) is not None
        or finish_by(claim, budgets) is not None
    )
    if not is_bounded and now - (claim.began_at or claim.started_at) >= PATIENCE:
        return Refused("DataRefused", reason)
    return Snooze(None, reason=reason)
