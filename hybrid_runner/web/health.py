"""Whether a worker is well, decided from its own snapshot alone: nothing here asks Postgres (A11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hybrid_runner.worker.status import WorkerStatus

MOST_ERRORS = 5
"""So many failed looks in a row, in any queue, are unhealthy."""

Phase = Literal["starting", "running", "stalled", "stopping"]


@dataclass(frozen=True, slots=True)
class Check:
    """One question about the worker, its answer, and why."""

    name: str
    ok: bool
    reason: str


def phase_of(status: WorkerStatus | None) -> Phase:
    """Where the worker is in its life; None: it has not started yet."""
    if status is None:
        return "starting"
    if status.stopping:
        return "stopping"
    return "stalled" if status.stalled else "running"


def checks_of(status: WorkerStatus | None) -> tuple[Check, ...]:
    """All that health depends on; a worker that has not started yet is not ill."""
    if status is None:
        return ()
    return (_claiming(status), _loops(status))


def _claiming(status: WorkerStatus) -> Check:
    failing = [f"{q.consecutive_errors} times in {q.queue}" for q in status.queues if q.consecutive_errors >= MOST_ERRORS]
    if failing:
        return Check("claiming", ok=False, reason=f"looking for jobs failed in a row: {', '.join(failing)}")
    return Check("claiming", ok=True, reason=f"no queue has seen {MOST_ERRORS} failed looks in a row")


def _loops(status: WorkerStatus) -> Check:
    if status.ended_loops:
        return Check("loops", ok=False, reason=f"ended, and only a restart brings back: {', '.join(status.ended_loops)}")
    return Check("loops", ok=True, reason="all background loops run")
