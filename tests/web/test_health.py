from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from hybrid_runner import QueueStatus, WorkerStatus
from hybrid_runner.policy.last_minute import QUIET, LastMinute
from hybrid_runner.web.pages.health import MOST_ERRORS, checks_of, phase_of
from hybrid_runner.web.pages.reports import health_of, worker_numbers
from hybrid_runner.worker.report.status import Vitals


def queue(name: str = "default", errors: int = 0, **fields: int) -> QueueStatus:
    values: dict[str, Any] = {
        "slots": 10,
        "running": 1,
        "looks": 7,
        "empty_looks": 3,
        "sweeps": 1,
        "polls": 2,
        "empty_polls": 1,
    } | fields
    return QueueStatus(
        queue=name,
        mode="asleep",
        found={"ring": 3, "sweep": 1},
        consecutive_errors=errors,
        next_poll=30.0,
        **values,
    )


def status(
    *queues: QueueStatus, stopping: bool = False, stalled: bool = False, ended: tuple[str, ...] = ()
) -> WorkerStatus:
    return WorkerStatus(
        id="w",
        hearing=True,
        stopping=stopping,
        running=1,
        pending_settlements=0,
        settled={"completed": 4},
        stale=0,
        rescued=2,
        stalls=0,
        stalled=stalled,
        ended_loops=ended,
        queues=queues or (queue(),),
    )


@pytest.mark.parametrize(
    ("errors", "ok"), [(0, True), (MOST_ERRORS - 1, True), (MOST_ERRORS, False), (99, False)]
)
def test_five_failed_looks_in_a_row_in_any_queue_are_unhealthy(errors: int, ok: bool) -> None:
    """A11"""
    claiming, loops, *_ = checks_of(status(queue(), queue("images", errors)))
    assert (claiming.name, claiming.ok) == ("claiming", ok)
    assert loops.ok
    if not ok:
        assert f"{errors} times in images" in claiming.reason


def test_a_loop_that_ended_is_unhealthy_and_named() -> None:
    """A11"""
    claiming, loops, *_ = checks_of(status(ended=("poller of images",)))
    assert claiming.ok
    assert (loops.name, loops.ok) == ("loops", False)
    assert "poller of images" in loops.reason


def test_a_worker_that_has_not_started_is_not_ill() -> None:
    assert checks_of(None) == ()


def test_the_phases() -> None:
    seen = [None, status(), status(stalled=True), status(stalled=True, stopping=True)]
    assert [phase_of(each) for each in seen] == ["starting", "running", "stalled", "stopping"]


def test_metrics_are_sums_over_the_queues_and_the_worst_of_what_counts_in_a_row() -> None:
    """A10 A11"""
    shown = worker_numbers(status(queue(errors=2), queue("images", empty_polls=6)))
    expected = {
        "id": "w",
        "hearing": True,
        "slots": 20,
        "running": 1,
        "waiting": 0,
        "looks": 14,
        "empty_looks": 6,
        "found": {"ring": 6, "sweep": 2},
        "polls": 4,
        "consecutive_errors": 2,
        "consecutive_empty_polls": 6,
        "settled": {"completed": 4},
        "pending_settlements": 0,
        "stale": 0,
        "rescued": 2,
        "stalls": 0,
        "missed": 0,
        "loop_lag": 0,
        "heartbeat_age": 0,
        "last_minute": asdict(QUIET),
    }
    queues = shown.pop("queues")
    assert shown == expected
    assert isinstance(queues, dict)
    assert set(queues) == {"default", "images"}
    assert (
        queues["images"]["consecutive_empty_polls"],
        queues["default"]["consecutive_errors"],
    ) == (6, 2)


def with_vitals(**vitals: Any) -> WorkerStatus:
    return replace(status(), vitals=Vitals(**vitals))


def with_queue(**fields: Any) -> WorkerStatus:
    return status(replace(queue(), **fields))


@pytest.mark.parametrize(
    ("seen", "name", "severity", "reason"),
    [
        (status(), "listener", "ok", "arrive"),
        (with_vitals(proof_overdue=True), "listener", "failed", "does not hear our own rings"),
        (with_vitals(deaf=14.9), "listener", "ok", "connecting"),
        (with_vitals(deaf=15.0), "listener", "warning", "15 s"),
        (with_vitals(deaf=0.1, disturbance="a flood"), "listener", "warning", "a flood: jobs are"),
        (with_vitals(heartbeat_age=13.4), "heartbeat", "ok", "13.4 s"),
        (with_vitals(heartbeat_age=13.5), "heartbeat", "failed", "every 10 s"),
        (with_vitals(heartbeat_age=5.0, heartbeat_every=1.0), "heartbeat", "failed", "every 1 s"),
        (with_vitals(away=0.0, complaint="refused"), "postgres", "warning", "refused"),
        (with_vitals(away=8.0, complaint="refused"), "postgres", "failed", "8 s: refused"),
        (with_vitals(loop_lag=0.9), "loop", "ok", "900 ms"),
        (with_vitals(loop_lag=1.0), "loop", "warning", "1.0 s"),
        (replace(with_vitals(loop_lag=6.0), stalled=True), "loop", "failed", "6 s"),
        (with_vitals(pinned=("session 1", "slot 2")), "horizon", "warning", "session 1; slot 2"),
        (with_vitals(unknown_kinds=("two of a", "one of b")), "kinds", "warning", "of a; one of b"),
        (with_vitals(unknown_kinds=tuple("abcdefg")), "kinds", "warning", "e; and 2 more"),
        (with_vitals(sources=("a is late", "b is gone")), "sources", "warning", "late; b is gone"),
        (with_vitals(sources=tuple("abcdefg")), "sources", "warning", "e; and 2 more"),
        (with_queue(busy=9.9, overdue=4.9), "polling", "ok", "in time"),
        (with_queue(busy=10.0), "polling", "failed", "default waits for an answer for 10 s"),
        (with_queue(overdue=5.0), "polling", "failed", "default is 5 s late"),
        (replace(with_queue(overdue=60.0), stopping=True), "polling", "ok", "stops"),
        (with_queue(missed=2, missed_ago=299.0), "missed_rings", "warning", "default (2 so far)"),
        (with_queue(missed=2, missed_ago=300.0), "missed_rings", "ok", "5 minutes"),
    ],
)
def test_each_check_has_a_severity_and_says_why(
    seen: WorkerStatus, name: str, severity: str, reason: str
) -> None:
    """A11: what is only worth knowing warns and leaves the worker well."""
    body = health_of(seen)
    [check] = [check for check in body["checks"] if check["name"] == name]
    assert (check["severity"], check["ok"]) == (severity, severity != "failed")
    assert reason in check["reason"]
    assert body["healthy"] is (severity != "failed")


def test_the_last_minute_of_several_queues_is_weighed_by_their_polls() -> None:
    """A10"""
    busy, idle = LastMinute(30, 2.0, 1.0, 4.0, 9.0), LastMinute(10, 0.0, 0.8, 8.0, 20.0)
    shown = worker_numbers(
        status(replace(queue(), last_minute=busy), replace(queue("images"), last_minute=idle))
    )
    assert shown["last_minute"] == asdict(LastMinute(40, 1.5, 0.95, 5.0, 20.0))


def test_monitors_are_a_check_only_where_they_are_measured() -> None:
    def named(monitors: tuple[str, ...] | None) -> list[tuple[bool, str, str]]:
        found = checks_of(replace(status(), vitals=Vitals(monitors=monitors)))
        return [(one.ok, one.severity, one.reason) for one in found if one.name == "monitors"]

    assert named(None) == []
    assert named(()) == [(True, "ok", "services are polled in time")]
    assert named(("7 are late", "no upkeep")) == [(True, "warning", "7 are late; no upkeep")]
