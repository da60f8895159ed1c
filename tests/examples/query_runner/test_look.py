"""One look after the other, at times that the test chooses: what is asked, and what is said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from examples.query_runner import app as jobs
from examples.query_runner.warehouse import Status, Unreachable
from hybrid_runner import Fail, Snooze
from tests.support.looks import MovedLook

QUERY = jobs.Query(run="run-1", sql="SELECT 1")
DOWN = Unreachable("500 Internal Server Error")


class Scripted:
    """A warehouse whose next answers the test sets; it notes what it is asked."""

    def __init__(self) -> None:
        self.word: str | Unreachable = "processing"
        self.error = ""
        self.hint = False
        self.running: bool | Unreachable = True
        self.rows: int | None = 0
        self.asked: list[str] = []

    async def status(self, _: str) -> Status:
        return Status(self._say("status", self.word), self.error, self.hint)

    async def is_running(self, _: str) -> bool:
        return bool(self._say("is_running", self.running))

    async def count(self, _: str) -> int | None:
        return self._say("count", self.rows)  # type: ignore[no-any-return]

    def _say(self, what: str, answer: Any) -> Any:
        self.asked.append(what)
        if isinstance(answer, Unreachable):
            raise answer
        return answer


class Looks(MovedLook):
    """One job, look after look."""

    def __init__(self) -> None:
        super().__init__()
        self.data = jobs.Poll(task="task-1")

    def later(self, reason: str | None = None) -> Snooze:
        return Snooze(reason=reason)


@pytest.fixture
def warehouse(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    made = Scripted()
    monkeypatch.setattr(jobs, "warehouse", made)
    return made


async def look(job: Looks, seconds: float) -> Any:
    said: Any = await jobs.poll(QUERY, job.at(seconds))
    return said


async def says(job: Looks, times: Iterable[float]) -> list[type]:
    return [type(await look(job, at)) for at in times]


async def test_two_still_looks_a_gap_apart_end_it_and_motion_begins_anew(
    warehouse: Scripted,
) -> None:
    """B7"""
    job = Looks()
    warehouse.hint, warehouse.running = True, False
    assert await says(job, [10, 20]) == [Snooze, Snooze]  # ten seconds are no gap
    warehouse.running = True
    assert await says(job, [40]) == [Snooze]
    warehouse.running = False
    assert await says(job, [60, 74]) == [Snooze, Snooze]
    assert await look(job, 75) == jobs.Result(rows=0, by="stillness")


async def test_a_check_that_fails_neither_confirms_nor_forgets(warehouse: Scripted) -> None:
    """B7, B10: it is said in a reason, and not charged."""
    job = Looks()
    warehouse.hint, warehouse.running = True, False
    await look(job, 10)
    warehouse.running = DOWN
    assert await look(job, 30) == Snooze(reason="the warehouse: 500 Internal Server Error")
    warehouse.running = False
    assert await look(job, 31) == jobs.Result(rows=0, by="stillness")


@pytest.mark.parametrize("stillness", [False, True])
async def test_rows_that_cannot_be_read_are_tried_six_times(
    warehouse: Scripted, stillness: bool
) -> None:
    """B8: from 1.5 s to 8 s apart; after the sixth it fails and says so."""
    job = Looks()
    warehouse.rows = None
    if stillness:
        warehouse.hint, warehouse.running = True, False
        await look(job, 100)
    else:
        warehouse.word = "complete"
    tries = [await look(job, 120 + at) for at in range(6)]
    delays = [each.delay.total_seconds() for each in tries]
    assert delays == sorted(delays)
    assert delays[0] == pytest.approx(1.5)
    assert 6.4 <= delays[-1] <= 8
    assert await look(job, 127) == Fail("its rows cannot be read after 6 tries")


async def test_no_rows_are_an_answer_once_it_has_ended_and_say_nothing_before(
    warehouse: Scripted,
) -> None:
    """B8"""
    job = Looks()
    assert await says(job, [6, 30, 60]) == [Snooze] * 3
    assert warehouse.asked.count("count") == 3
    warehouse.word = "complete"
    assert await look(job, 61) == jobs.Result(rows=0, by="status")


async def test_the_probe_waits_for_five_seconds_and_then_for_fifteen_each_time(
    warehouse: Scripted,
) -> None:
    """B9"""
    job = Looks()
    probed = []
    for at in (0, 4.9, 5, 12, 19.9, 20, 34, 35):
        warehouse.asked.clear()
        await look(job, at)
        if "count" in warehouse.asked:
            probed.append(at)
    assert probed == [5, 20, 35]
    warehouse.rows = 12
    assert await look(job, 50) == jobs.Result(rows=12, by="probe")


@pytest.mark.parametrize(
    ("hint", "times", "checked"),
    [(True, (1, 4.9, 5, 8), [5, 8]), (False, (5, 100, 179.9, 180, 200), [180, 200])],
)
async def test_whether_it_still_runs_is_asked_after_a_hint_or_when_it_seems_stuck(
    warehouse: Scripted, hint: bool, times: tuple[float, ...], checked: list[float]
) -> None:
    """B9"""
    job = Looks()
    warehouse.hint = hint
    asked = []
    for at in times:
        warehouse.asked.clear()
        await look(job, at)
        if "is_running" in warehouse.asked:
            asked.append(at)
    assert asked == checked


async def test_a_reported_error_fails_it_at_once(warehouse: Scripted) -> None:
    """B10"""
    warehouse.word, warehouse.error = "error", "division by zero"
    assert await look(Looks(), 1) == Fail("division by zero")
    assert warehouse.asked == ["status"]


@pytest.mark.parametrize("at", [1, 1000])
async def test_a_warehouse_that_is_away_is_asked_again_later(
    warehouse: Scripted, at: float
) -> None:
    """B10"""
    warehouse.word = DOWN
    assert await look(Looks(), at) == Snooze(reason="the warehouse: 500 Internal Server Error")
