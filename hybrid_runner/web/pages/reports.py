"""The bodies of /health and /ready and the values of /metrics, made from the worker's status in
memory: a lost database cannot hold them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from hybrid_runner.policy.last_minute import QUIET, LastMinute
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.version import VERSION
from hybrid_runner.web.pages.health import HARMLESS, Phase, checks_of, phase_of
from hybrid_runner.web.pages.metric_values import metric_values_of
from hybrid_runner.worker.report.status import WorkerStatus

Body = dict[str, Any]


class PageReports(Protocol):
    """Where pages get their contents: a worker, or a supervisor of several."""

    def health(self) -> Body:
        """The body of /health; its `healthy` decides between 200 and 503."""

    def ready(self) -> Body:
        """The body of /ready; its `ready` decides between 200 and 503."""

    def metric_values(self) -> MetricValues:
        """The values of /metrics."""


class WorkerReports:
    """The reports of one worker; `status` gives None until it has started."""

    def __init__(self, status: Callable[[], WorkerStatus | None]) -> None:
        self._status = status

    def health(self) -> Body:
        return health_of(self._status())

    def ready(self) -> Body:
        return ready_of(health_of(self._status()))

    def metric_values(self) -> MetricValues:
        return metric_values_of(self._status())


def health_of(status: WorkerStatus | None) -> Body:
    """The body of /health: the checks, and the numbers that they were made from."""
    checks = checks_of(status)
    return {
        "healthy": all(check.ok for check in checks),
        "phase": phase_of(status),
        "version": VERSION,
        "checks": [check.body() for check in checks],
        "worker": None if status is None else worker_numbers(status),
    }


def ready_of(health: Body) -> Body:
    """The body of /ready, from that of /health: true while jobs are taken, so not while a handler
    holds up the event loop, nor while Postgres is gone.
    """
    hindrances = hindrances_of(health)
    ready = health["phase"] == "running" and not hindrances
    return ready_in(health["phase"], ready=ready, hindrances=hindrances)


def ready_in(phase: Phase, *, ready: bool, hindrances: Sequence[str]) -> Body:
    """The body of /ready: a reason is there if the phase is not reason enough."""
    body = {"ready": ready, "phase": phase}
    return body | ({"reason": "; ".join(hindrances)} if hindrances else {})


def hindrances_of(health: Body) -> list[str]:
    """Why no jobs are taken, by the body of a worker's /health."""
    return [
        check["reason"]
        for check in health["checks"]
        if not check["ok"] and check["name"] not in HARMLESS
    ]


def worker_numbers(status: WorkerStatus) -> Body:
    """The worker's numbers: sums over its queues, the highest of what counts in a row, and each
    queue by itself.
    """
    queues = status.queues
    found = sum((Counter(queue.found) for queue in queues), Counter[str]())
    return {
        "id": status.id,
        "hearing": status.hearing,
        "slots": sum(queue.slots for queue in queues),
        "running": status.running,
        "waiting": status.waiting,
        "looks": sum(queue.looks for queue in queues),
        "empty_looks": sum(queue.empty_looks for queue in queues),
        "found": dict(found),
        "polls": sum(queue.polls for queue in queues),
        "consecutive_errors": max((queue.consecutive_errors for queue in queues), default=0),
        "consecutive_empty_polls": max((queue.empty_polls for queue in queues), default=0),
        "settled": status.settled,
        "pending_settlements": status.pending_settlements,
        "stale": status.stale,
        "rescued": status.rescued,
        "stalls": status.stalls,
        "missed": sum(queue.missed for queue in queues),
        "loop_lag": round(status.vitals.loop_lag, 4),
        "heartbeat_age": round(status.vitals.heartbeat_age, 3),
        "last_minute": _together([queue.last_minute for queue in queues]),
        "queues": {queue.queue: _of_queue(asdict(queue)) for queue in queues},
    }


def _together(minutes: Sequence[LastMinute]) -> Body:
    """A10 over all queues: sums, means weighted by looks, and the longest claim."""
    looks = sum(minute.looks_per_minute for minute in minutes)

    def mean(of: Callable[[LastMinute], float]) -> float:
        return sum(of(minute) * minute.looks_per_minute for minute in minutes) / looks

    if not looks:
        return asdict(QUIET)
    return {
        "looks_per_minute": looks,
        "jobs_found_per_look": round(mean(lambda minute: minute.jobs_found_per_look), 3),
        "claim_success_rate": round(mean(lambda minute: minute.claim_success_rate), 4),
        "claim_latency_ms": round(mean(lambda minute: minute.claim_latency_ms), 3),
        "longest_claim_ms": max(minute.longest_claim_ms for minute in minutes),
    }


def _of_queue(fields: dict[str, object]) -> dict[str, object]:
    return {
        {"empty_polls": "consecutive_empty_polls"}.get(name, name): fields[name]
        for name in fields
        if name != "queue"
    }
