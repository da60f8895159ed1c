"""What becomes of an attempt whose handler `Job.signal` has unwound."""

from __future__ import annotations

import logging

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Outcome, Snooze, Stopped, Suspended
from hybrid_runner.telemetry.logs.job_fields import job_fields

log = logging.getLogger("hybrid_runner.worker")


def unwound(claim: Claim, outcome: Outcome) -> Outcome:
    """The job waits, whatever a handler says that caught the exception and went on."""
    wanted = None if claim.signals is None else claim.signals.waits_for
    if wanted is None or isinstance(outcome, Stopped):
        return outcome
    if isinstance(outcome, Snooze) and outcome.wake_on == wanted.key:
        return outcome
    log.warning(
        "its handler went on after job.signal() had unwound it, and what it said then does not"
        " count: let exceptions pass that are no Exception",
        extra=job_fields(claim, "job.wait_ignored"),
    )
    return Suspended(wanted).snooze
