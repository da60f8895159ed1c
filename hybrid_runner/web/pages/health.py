"""The checks of GET /health, decided from the worker's status in memory: nothing here asks Postgres
(A11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hybrid_runner.policy.missed_rings import RECENT
from hybrid_runner.worker.report.status import WorkerStatus

MOST_ERRORS = 5
"""Failed looks in a row, in any queue, from which the worker is unhealthy."""
LATE_POLL = 5.0
"""Seconds by which a fallback poll may be late."""
HANGS_FROM = 10.0
"""Seconds without an answer to a look from which the claimer counts as hanging."""
LATE_BEAT = 3.0
"""Seconds by which a heartbeat may be late; with one every 10 s, the default, the page shows a lost
server within 14 s.
"""
SPREAD = 1.05
"""Heartbeats come up to a twentieth later than their interval, so that a fleet spreads."""
AWAY_FROM = 8.0
"""Seconds without any answer, after a first failure, from which Postgres counts as away."""
DEAF_FROM = 15.0
"""Seconds of deafness that a reconnect may take before it is shown as a warning."""
LAG_FROM = 1.0
"""Seconds of event-loop lag from which there is a warning; from `stall_after` on it is a stall."""

MOST_KINDS = 5
"""So many unknown kinds are named."""
MOST_SOURCES = 5
"""So much that is wrong with attached tables is named."""

HARMLESS = frozenset({"listener"})
"""Checks that may fail while jobs are taken: then by polling alone."""

Phase = Literal["starting", "running", "stalled", "stopping"]
Severity = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One question about the worker, the answer and the reason. A warning is for people to see:
    the worker stays healthy.
    """

    name: str
    severity: Severity
    reason: str

    @property
    def ok(self) -> bool:
        return self.severity != "failed"

    def body(self) -> dict[str, object]:
        """The check as /health shows it."""
        return {"name": self.name, "ok": self.ok, "severity": self.severity, "reason": self.reason}


def phase_of(status: WorkerStatus | None) -> Phase:
    """The phase of a worker's life; None: it has not started yet."""
    if status is None:
        return "starting"
    if status.stopping:
        return "stopping"
    return "stalled" if status.stalled else "running"


def checks_of(status: WorkerStatus | None) -> tuple[Check, ...]:
    """All checks of a worker. One that has not started yet has none, and so is healthy."""
    if status is None:
        return ()
    return tuple(found for check in CHECKS if (found := check(status)) is not None)


def _claiming(status: WorkerStatus) -> Check:
    failing = [
        f"{q.consecutive_errors} times in {q.queue}"
        for q in status.queues
        if q.consecutive_errors >= MOST_ERRORS
    ]
    if failing:
        return Check(
            "claiming", "failed", f"looking for jobs failed in a row: {', '.join(failing)}"
        )
    refused = [f"jobs of {kind}" for q in status.queues for kind in q.refused_kinds]
    refused += [f"{q.refused_jobs} jobs of {q.queue}" for q in status.queues if q.refused_jobs]
    if refused:
        return Check(
            "claiming",
            "warning",
            f"Postgres refuses to hand out {', '.join(refused)}: the log says why",
        )
    return Check("claiming", "ok", f"no queue has seen {MOST_ERRORS} failed looks in a row")


def _loops(status: WorkerStatus) -> Check:
    ended = status.ended_loops
    if "heartbeat" in ended:
        return Check(
            "loops", "failed", f"ended, and only a restart brings back: {', '.join(ended)}"
        )
    if ended:
        return Check("loops", "failed", f"ended, and about to be started again: {', '.join(ended)}")
    return Check("loops", "ok", "all background loops run")


def _polling(status: WorkerStatus) -> Check:
    if status.stopping:
        return Check("polling", "ok", "it has ended, since the worker stops")
    hanging = [
        f"{q.queue} waits for an answer for {q.busy:.0f} s"
        for q in status.queues
        if q.busy >= HANGS_FROM
    ]
    late = [
        f"the fallback poll of {q.queue} is {q.overdue:.0f} s late"
        for q in status.queues
        if q.overdue >= LATE_POLL
    ]
    if hanging or late:
        return Check(
            "polling", "failed", f"looking for jobs has stopped: {', '.join(hanging + late)}"
        )
    return Check("polling", "ok", "every queue is looked at in time")


def _listener(status: WorkerStatus) -> Check:
    vitals = status.vitals
    if vitals.proof_overdue:
        return Check(
            "listener",
            "failed",
            "it is connected and does not hear our own rings; it will connect again in a moment",
        )
    if vitals.deaf is None:
        return Check("listener", "ok", "rings arrive")
    if vitals.disturbance:
        return Check("listener", "warning", f"{vitals.disturbance}: jobs are found by polling")
    if vitals.deaf >= DEAF_FROM and not status.stopping:
        return Check(
            "listener",
            "warning",
            f"no ring could arrive for {vitals.deaf:.0f} s: jobs are found by polling, only later",
        )
    return Check("listener", "ok", "it is connecting")


def _heartbeat(status: WorkerStatus) -> Check:
    age, every = status.vitals.heartbeat_age, status.vitals.heartbeat_every
    if age >= every * SPREAD + LATE_BEAT:
        return Check(
            "heartbeat",
            "failed",
            f"Postgres took the last one {age:.0f} s ago; one is due every {every:g} s",
        )
    return Check("heartbeat", "ok", f"Postgres took the last one {age:.1f} s ago")


def _loop(status: WorkerStatus) -> Check:
    lag = status.vitals.loop_lag
    if status.stalled:
        return Check(
            "loop",
            "failed",
            f"a handler has held up the event loop for {lag:.0f} s: its stack is in the log",
        )
    if lag >= LAG_FROM:
        return Check(
            "loop",
            "warning",
            f"the event loop is {lag:.1f} s late: a handler holds it up, or the machine is too"
            " busy",
        )
    return Check("loop", "ok", f"the event loop is {lag * 1000:.0f} ms late")


def _missed_rings(status: WorkerStatus) -> Check:
    recent = [
        f"{q.queue} ({q.missed} so far)"
        for q in status.queues
        if q.missed_ago is not None and q.missed_ago < RECENT
    ]
    if recent:
        return Check(
            "missed_rings",
            "warning",
            f"jobs waited for a poll although a ring was due: {', '.join(recent)}",
        )
    return Check("missed_rings", "ok", f"none in the last {RECENT / 60:.0f} minutes")


def _settling(status: WorkerStatus) -> Check:
    if status.refused_settlements and status.vitals.refusal:
        return Check(
            "settling",
            "warning",
            f"Postgres refuses the outcomes of {status.refused_settlements} jobs; they are kept and"
            f" tried again: {status.vitals.refusal}",
        )
    return Check("settling", "ok", "Postgres refuses no outcome")


def _horizon(status: WorkerStatus) -> Check:
    if status.vitals.pinned:
        return Check("horizon", "warning", "; ".join(status.vitals.pinned))
    return Check("horizon", "ok", "this worker knows of nobody who keeps vacuum from cleaning up")


def _kinds(status: WorkerStatus) -> Check:
    if unknown := status.vitals.unknown_kinds:
        more = f"; and {len(unknown) - MOST_KINDS} more" if len(unknown) > MOST_KINDS else ""
        return Check("kinds", "warning", "; ".join(unknown[:MOST_KINDS]) + more)
    return Check("kinds", "ok", "this worker knows of no due job that nobody can run")


def _sources(status: WorkerStatus) -> Check:
    if found := status.vitals.sources:
        more = f"; and {len(found) - MOST_SOURCES} more" if len(found) > MOST_SOURCES else ""
        return Check("sources", "warning", "; ".join(found[:MOST_SOURCES]) + more)
    return Check("sources", "ok", "this worker knows of no attached table that is in disorder")


def _monitors(status: WorkerStatus) -> Check | None:
    found = status.vitals.monitors
    if found is None:
        return None
    if found:
        return Check("monitors", "warning", "; ".join(found))
    return Check("monitors", "ok", "services are polled in time")


def _schedules(status: WorkerStatus) -> Check | None:
    found = status.vitals.schedules
    if found is None:
        return None
    if found:
        return Check("schedules", "warning", "; ".join(found))
    return Check("schedules", "ok", "schedules fire in time")


def _postgres(status: WorkerStatus) -> Check:
    away, complaint = status.vitals.away, status.vitals.complaint
    if away is None:
        return Check("postgres", "ok", "it answers")
    severity: Severity = "failed" if away >= AWAY_FROM else "warning"
    return Check("postgres", severity, f"nobody has had an answer for {away:.0f} s: {complaint}")


CHECKS: tuple[Callable[[WorkerStatus], Check | None], ...] = (
    _claiming,
    _loops,
    _polling,
    _listener,
    _heartbeat,
    _loop,
    _missed_rings,
    _settling,
    _horizon,
    _kinds,
    _sources,
    _monitors,
    _schedules,
    _postgres,
)
