"""B14: what values of a memory do is counted without code of the application's, wherever its
handler runs.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner import Job
from hybrid_runner.model.outcomes import Completed
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import Instrument
from hybrid_runner.waiting.look import Look
from hybrid_runner.worker.run.process_messages import BadMessage, Ended, read, written
from tests.support.working import outcome, runner, working
from tests.worker import waiting_handlers


@pytest.mark.parametrize("kind", ["in_loop", "in_thread", "in_process"])
async def test_values_are_counted_by_kind_and_field(dsn: str, kind: str) -> None:
    """B14: probes, confirmations, readiness retries and fast endings."""
    app = runner(dsn, waiting_handlers.app.registry)
    async with working(app) as worker:
        before = worker.status().metric_values
        job = await outcome(app, kind)
        await worker.settled(1)
        after = worker.status().metric_values
    assert (job.result, job.snoozes) == ("done", 3)

    def grown(instrument: Instrument) -> dict[tuple[str, ...], object]:
        return {
            labels[1:]: value
            for labels, value in after[instrument.name].items()
            if labels[0] == kind and value
        }

    assert grown(table.GATES_OPENED) == {("step.probe",): 2, ("(other)",): 1}
    assert grown(table.CONFIRMATIONS) == {("idle", "seen"): 4, ("idle", "confirmed"): 1}
    assert grown(table.TRIES) == {("rows", "again"): 2, ("rows", "used_up"): 1}
    assert grown(table.GATE_ENDINGS) == {("(other)",): 1}
    # Rates need series that begin at 0.
    assert before[table.GATES_OPENED.name][kind, "never"] == 0
    assert before[table.GATE_ENDINGS.name][kind, "step.probe"] == 0
    assert before[table.CONFIRMATIONS.name][kind, "idle", "confirmed"] == 0
    assert before[table.TRIES.name][kind, "rows", "used_up"] == 0


async def test_what_a_handler_counts_without_sense_does_not_end_its_job(dsn: str) -> None:
    """B14"""
    app = runner(dsn, waiting_handlers.app.registry)
    async with working(app) as worker:
        assert (await outcome(app, "counts_nonsense")).result == "done"
        values = worker.status().metric_values
    assert ("counts_nonsense", "(other)") not in values[table.GATES_OPENED.name]


async def test_a_job_is_what_its_values_ask(dsn: str) -> None:
    """B9: the clock is the database's, whatever the worker's own shows."""
    app = runner(dsn)
    seen = list[Look]()

    @app.job("look")
    async def look(_: object, job: Job) -> None:
        asked: Look = job
        assert 0 <= asked.chance < 1
        seen.append(asked)

    async with working(app) as worker:
        await app.enqueue("look", {})
        await worker.settled(1)
    [asked] = seen
    assert asked.began_at.tzinfo is not None
    assert timedelta(0) <= asked.elapsed < timedelta(minutes=1)


def test_uses_come_from_a_process_as_they_were_sent() -> None:
    """B14"""
    ended = Ended(1, 2, Completed("1"), False, uses={("opened", "step.probe"): 3})
    assert read(written(ended)[4:]) == ended


@pytest.mark.parametrize(
    "uses",
    [
        '[["opened","probe",0]]',
        '[["opened","probe",-1]]',
        '[["opened","probe",99999999999]]',
        '[["exploded","probe",1]]',
        '[["opened",7,1]]',
        "[[]]",
        "{}",
        "[" + ",".join(['["opened","probe",1]'] * 1001) + "]",
    ],
)
def test_uses_that_cannot_be_are_no_message(uses: str) -> None:
    content = written(Ended(1, 2, Completed("1"), False))[4:]
    with pytest.raises(BadMessage):
        read(content.replace(b'"uses":[]', f'"uses":{uses}'.encode()))
