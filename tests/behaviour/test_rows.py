"""Whether the laws that judge rows are worth anything; they are asked by test_chaos.py and
test_operations.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.behaviour.rows.laws import check
from tests.behaviour.rows.records import Change, Ended, Records, Row, Seen, read_seen
from tests.behaviour.rows.table import APPLICATION

WORKER = "a_worker"


def row(number: int, status: str = "done", **more: Any) -> Row:
    values: dict[str, Any] = {
        "wants": 1,
        "how": "returns",
        "retries": 0,
        "worker": "w",
        "is_started": True,
        "is_finished": True,
        "result": {"run": f"run {number}"},
        "error": None,
    }
    return Row(number, status, **(values | more))


def ended(number: int, state: str = "completed", **more: Any) -> Ended:
    values: dict[str, Any] = {
        "row": number,
        "attempt": 1,
        "claim": 50 + number,
        "last_error": "",
        "at": float(number),
        "result": {"run": f"run {number}"},
    }
    return Ended(100 + number, state=state, **(values | more))


def seen(number: int, **more: Any) -> Seen:
    values: dict[str, Any] = {
        "row": number,
        "wants": 1,
        "id": 100 + number,
        "claim": 50 + number,
        "how": "returned",
    }
    return Seen(f"run {number}", **(values | more))


def words(number: int, *steps: str) -> list[Change]:
    """The first is the application's, the others are the worker's."""
    return [
        Change(number, 1, was, became, WORKER if was else APPLICATION)
        for was, became in zip(("", *steps), steps, strict=False)
    ]


def good() -> Records:
    """One row is done, one broken, one dropped by its application, one never was wanted."""
    return Records(
        rows=[
            row(1),
            row(2, "broken", retries=1, result=None, error="boom"),
            row(3, "dropped", result=None, is_finished=False),
            row(4, "draft", wants=0, retries=None, result=None, is_finished=False),
        ],
        changes=[
            *words(1, "pending", "processing", "done"),
            *words(2, "pending", "processing", "broken"),
            *words(3, "pending", "processing"),
            Change(3, 1, "processing", "dropped", APPLICATION),
            *words(4, "draft"),
        ],
        ended=[
            ended(1),
            ended(2, "failed", last_error="ValueError", result=None),
            ended(3, "cancelled", result=None),
        ],
        seen=[seen(1), seen(2, how="raised"), seen(3, how="cancelled")],
    )


def broken(change: Callable[[Records], object]) -> set[str]:
    records = good()
    change(records)
    return {what.partition(":")[0] for what in check(records)}


def with_row(number: int, **values: Any) -> Callable[[Records], object]:
    def change(records: Records) -> None:
        records.rows = [
            replace(each, **values) if each.id == number else each for each in records.rows
        ]

    return change


def test_good_records_break_no_law() -> None:
    assert check(good()) == []


@pytest.mark.parametrize("status", ["pending", "processing"])
def test_a_row_that_waits_or_runs_when_all_is_quiet_is_found(status: str) -> None:
    assert "left_over" in broken(with_row(1, status=status))


def test_a_row_that_is_late_and_a_job_that_is_live_are_found() -> None:
    assert broken(lambda records: records.late.append((1, "locked"))) == {"left_over"}
    assert broken(lambda records: records.left.append((9, 1, "queued"))) == {"left_over"}


def test_a_word_that_is_not_that_of_the_last_job_is_found() -> None:
    def newer_job_failed(records: Records) -> None:
        records.ended.append(replace(ended(1, "failed", claim=60), id=300))
        records.seen.append(seen(1, id=300, claim=60))

    assert "shown_otherwise" in broken(newer_job_failed)
    assert "shown_otherwise" in broken(with_row(1, result={"run": "another"}))
    assert "shown_otherwise" in broken(with_row(1, is_finished=False))
    assert "shown_otherwise" in broken(with_row(2, error=None))
    assert "shown_otherwise" in broken(lambda records: records.ended.pop(0))


def test_a_last_run_that_did_not_see_the_last_want_is_found() -> None:
    assert broken(with_row(1, wants=2)) == {"want_lost"}
    assert broken(lambda records: records.seen.pop(0)) == {"want_lost", "done_unseen"}


def test_a_row_that_was_done_before_a_run_saw_what_is_wanted_is_found() -> None:
    def wanted_meanwhile(records: Records) -> None:
        again = [
            Change(1, 2, "processing", "pending", APPLICATION),
            Change(1, 2, "pending", "done", WORKER),
            Change(1, 3, "done", "pending", APPLICATION),
            Change(1, 3, "pending", "done", WORKER),
        ]
        records.changes[2:3] = again
        records.seen.append(seen(1, wants=3, id=300, claim=60))
        records.ended.append(replace(ended(1, claim=60), id=300))
        with_row(1, wants=3)(records)

    assert broken(wanted_meanwhile) == {"done_unseen"}


def test_a_want_that_no_run_could_see_is_no_loss() -> None:
    def worker_lost(records: Records) -> None:
        records.ended[1] = replace(records.ended[1], last_error="WorkerLost")
        records.seen.pop(1)

    assert broken(worker_lost) == set()


def test_a_job_that_ended_twice_is_found() -> None:
    assert broken(lambda records: records.ended.append(ended(1))) == {"ended_twice"}


@pytest.mark.parametrize("was", ["done", "broken", "dropped", "draft"])
def test_a_word_over_a_final_one_is_found_unless_the_application_wrote_it(was: str) -> None:
    def overwritten(by: str) -> Callable[[Records], object]:
        return lambda records: records.changes.insert(0, Change(1, 1, was, "pending", by))

    assert broken(overwritten(WORKER)) == {"final_word_overwritten"}
    assert broken(overwritten(APPLICATION)) == set()


def test_a_row_that_waits_again_since_its_job_was_retried_is_no_fault() -> None:
    def retried(records: Records) -> None:
        records.changes.insert(0, Change(1, 1, "broken", "pending", "an_admin"))
        records.retried.add(101)

    assert broken(retried) == set()


def test_two_runs_of_one_claim_are_found() -> None:
    assert broken(lambda records: records.seen.append(seen(1))) == {"ran_twice"}


@pytest.mark.parametrize(("number", "retries"), [(1, 1), (1, None), (2, 0), (2, 2)])
def test_a_wrong_number_of_retries_is_found(number: int, retries: int | None) -> None:
    assert broken(with_row(number, retries=retries)) == {"miscounted"}


def test_a_deadlock_is_found() -> None:
    assert broken(lambda records: records.deadlocks.append("deadlock detected")) == {"deadlocked"}


def test_journals_of_handlers_are_read_as_what_was_known_when_a_process_died() -> None:
    began: dict[str, Any] = {"what": "began", "row": 1, "wants": 2, "id": 3, "claim": 4}
    lines = [
        began | {"run": "a"},
        began | {"run": "b"},
        {"what": "ended", "run": "a", "how": "raised"},
    ]
    assert read_seen(lines) == [Seen("a", 1, 2, 3, 4, "raised"), Seen("b", 1, 2, 3, 4)]
