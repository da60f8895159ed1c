"""Random operations beside handlers that end in every way, and whether the laws that judge them are
worth anything.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.behaviour.operations.laws import check
from tests.behaviour.operations.mix import mix
from tests.behaviour.operations.records import Ended, Follower, Known, Pause, Records, Run, Signal

SECONDS = 20


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_after_random_operations_every_promise_was_kept(dsn: str) -> None:
    """A4, A6, D5: nothing lost, no id twice, attempts within bounds, effects with completions."""
    seed = int(os.environ.get("HYBRID_RUNNER_TEST_SEED") or random.randrange(1 << 16))
    result = await mix(dsn, SECONDS, seed)
    assert result.violations == [], f"with seed {seed}"
    assert result.jobs > 100, "so little proves nothing"


# --- the laws, on records made by hand

AT = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def ended(job_id: int, kind: str = "returns", **more: Any) -> Ended:
    values: dict[str, Any] = {
        "queue": "default",
        "priority": 5,
        "state": "completed",
        "mark": job_id,
        "attempt": 1,
        "max_attempts": 3,
        "snoozes": 0,
        "claim": 50 + job_id,
        "run_at": later(job_id),
        "started_at": later(job_id + 0.1),
    }
    return Ended(job_id, kind, **(values | more))


def good() -> Records:
    """Six jobs; nothing is wrong."""
    rows = [
        ended(1),
        ended(5, "gathers", snoozes=2, started_at=later(9), result={"marks": [81]}),
        ended(6, "starts"),
        ended(2, "completes_itself"),
        ended(3, "refuses", state="failed"),
        ended(4, state="cancelled", claim=None, attempt=0, started_at=None),
    ]
    return Records(
        known={
            row.id: Known(
                row.run_at,
                marks={row.id},
                touched=row.id == 4,
                answers=["cancelled"] if row.id == 4 else [],
            )
            for row in rows
        },
        undone={9},
        pauses=[Pause("default", later(20), later(21))],
        ended=rows,
        runs=[
            *(Run(row.id, row.claim, 1, row.id) for row in rows if row.claim is not None),
            *(Run(5, claim, 1, 5) for claim in (10, 11)),
        ],
        effects=[(2, 52)],
        followers=[Follower("clean_up", 3, None, "failed"), Follower("child", 6, 56, None)],
        signals={81: Signal(5, later(6)), 82: Signal(5, later(9.5)), 83: Signal(7, later(6))},
    )


def broken(records: Records) -> set[str]:
    return {violation.partition(":")[0] for violation in check(records)}


def changed(job_id: int, **values: Any) -> Records:
    """Good records, but for one row of the archive."""
    records = good()
    records.ended = [replace(row, **values) if row.id == job_id else row for row in records.ended]
    return records


def test_good_records_break_no_law() -> None:
    assert check(good()) == []


def test_a_job_that_is_nowhere_is_found() -> None:
    records = good()
    records.ended = records.ended[:-1]
    assert broken(records) == {"lost"}


def test_a_job_that_did_not_end_is_found() -> None:
    records = good()
    records.left = [(4, "returns", "running")]
    records.ended = records.ended[:-1]
    assert broken(records) == {"lost"}


def test_a_job_that_ended_twice_is_found() -> None:
    records = good()
    records.ended = [*records.ended, ended(1)]
    assert "ended_twice" in broken(records)


@pytest.mark.parametrize("stranger", [9, 10], ids=["rolled back", "never committed"])
def test_a_job_that_nobody_committed_is_found(stranger: int) -> None:
    records = good()
    records.ended = [*records.ended, ended(stranger)]
    records.runs = [*records.runs, Run(stranger, 50 + stranger, 1, stranger)]
    assert broken(records) == {"unknown"}


def test_a_payload_that_was_rolled_back_is_found() -> None:
    assert broken(changed(1, mark=77)) == {"unknown"}


def test_a_claim_that_ran_twice_is_found() -> None:
    records = good()
    records.runs = [*records.runs, records.runs[0]]
    assert "ran_twice" in broken(records)


@pytest.mark.parametrize("values", [{"attempt": 4}, {"attempt": 2}, {"snoozes": 1}])
def test_an_attempt_too_many_is_found(values: dict[str, int]) -> None:
    assert broken(changed(1, **values)) == {"too_many_attempts"}


def test_another_end_than_the_handler_s_is_found() -> None:
    assert "ended_otherwise" in broken(changed(3, state="completed"))


def test_a_cancelled_job_that_nobody_cancelled_is_found() -> None:
    records = good()
    records.known[4].answers = ["finished"]
    assert broken(records) == {"ended_otherwise"}


@pytest.mark.parametrize(
    "effects", [[], [(2, 52), (2, 52)], [(2, 52), (2, 51)], [(2, 52), (3, 53)]]
)
def test_an_effect_without_its_completion_or_twice_is_found(
    effects: list[tuple[int, int]],
) -> None:
    records = good()
    records.effects = effects
    assert broken(records) == {"effects"}


@pytest.mark.parametrize(
    "marks", [[], [81, 81], [81, 83], [81, 99]], ids=["lost", "twice", "of another", "rolled back"]
)
def test_a_signal_that_was_lost_or_given_wrongly_is_found(marks: list[int]) -> None:
    assert broken(changed(5, result={"marks": marks})) == {"gathered_otherwise"}


@pytest.mark.parametrize(
    "followers",
    [
        [("child", 6, 56, None)],
        [("clean_up", 3, None, "completed"), ("child", 6, 56, None)],
        [("clean_up", 3, None, "failed")] * 2 + [("child", 6, 56, None)],
        [("clean_up", 3, None, "failed"), ("child", 6, 55, None)],
        [("clean_up", 3, None, "failed"), ("child", 6, 56, None), ("child", 6, 56, None)],
        [("clean_up", 3, None, "failed"), ("child", 6, 56, None), ("child", 1, 51, None)],
        [("clean_up", 3, None, "failed"), ("child", 6, 56, None), ("child", 77, 1, None)],
    ],
    ids=["missing", "told otherwise", "twice", "stale", "child twice", "unasked", "of nobody"],
)
def test_what_follows_an_end_wrongly_is_found(followers: list[Any]) -> None:
    records = good()
    records.followers = [Follower(*each) for each in followers]
    assert broken(records) == {"followed_otherwise"}


def test_a_start_in_a_paused_queue_is_found() -> None:
    assert broken(changed(1, run_at=later(20.3), started_at=later(20.5))) == {
        "started_while_paused"
    }


def test_an_older_job_that_starts_far_behind_a_younger_one_is_found() -> None:
    records = changed(1, started_at=later(30))
    records.ended = [
        replace(row, started_at=later(8)) if row.id == 2 else row for row in records.ended
    ]
    assert broken(records) == {"out_of_order"}
