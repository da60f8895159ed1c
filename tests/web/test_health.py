from __future__ import annotations

import pytest

from hybrid_runner import QueueStatus, WorkerStatus
from hybrid_runner.web.health import MOST_ERRORS, checks_of, phase_of
from hybrid_runner.web.reports import figures


def queue(name: str = "default", errors: int = 0, **fields: int) -> QueueStatus:
    values = {"slots": 10, "running": 1, "looks": 7, "empty_looks": 3, "sweeps": 1, "polls": 2, "empty_polls": 1} | fields
    return QueueStatus(
        queue=name, mode="asleep", found={"ring": 3, "sweep": 1}, consecutive_errors=errors, next_poll=30.0, **values
    )


def status(*queues: QueueStatus, stopping: bool = False, stalled: bool = False, ended: tuple[str, ...] = ()) -> WorkerStatus:
    return WorkerStatus(
        id="w", hearing=True, stopping=stopping, running=1, pending_settlements=0, settled={"completed": 4}, stale=0,
        rescued=2, stalls=0,
        stalled=stalled,
        ended_loops=ended, queues=queues or (queue(),),
    )  # fmt: skip


@pytest.mark.parametrize(("errors", "ok"), [(0, True), (MOST_ERRORS - 1, True), (MOST_ERRORS, False), (99, False)])
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


def test_figures_are_sums_over_the_queues_and_the_worst_of_what_counts_in_a_row() -> None:
    """A10 A11"""
    shown = figures(status(queue(errors=2), queue("images", empty_polls=6)))
    expected = {
        "id": "w", "hearing": True, "slots": 20, "running": 1, "looks": 14, "empty_looks": 6, "found": {"ring": 6, "sweep": 2},
        "polls": 4, "consecutive_errors": 2, "consecutive_empty_polls": 6, "settled": {"completed": 4}, "pending_settlements": 0,
        "stale": 0, "rescued": 2, "stalls": 0,
    }  # fmt: skip
    queues = shown.pop("queues")
    assert shown == expected
    assert isinstance(queues, dict)
    assert set(queues) == {"default", "images"}
    assert (queues["images"]["consecutive_empty_polls"], queues["default"]["consecutive_errors"]) == (6, 2)
