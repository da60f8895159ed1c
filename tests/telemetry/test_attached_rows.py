"""Log lines and spans of jobs of an attached table name the row."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits
from tests.support.recorded import RecordedSpans, attributes_of, traces
from tests.support.working import runner, working


async def wanted(database: Connection) -> int:
    number: int = await database.fetchval(
        "INSERT INTO public.audits (website_url) VALUES ('a.example') RETURNING id"
    )
    return number


async def test_log_lines_and_spans_name_the_row(
    dsn: str, database: Connection, recorded: RecordedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    """A12, F4: the change of the row is in the job's trace."""
    caplog.set_level(logging.DEBUG, "hybrid_runner")
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    async with working(app) as worker:
        number = await wanted(database)
        await worker.settled(1)
        await worker.idle()
    said = {
        record.__dict__["event"]: (record.__dict__["source"], record.__dict__["row"])
        for record in caplog.records
        if "row" in record.__dict__
    }
    assert said == {"job.claimed": (1, str(number)), "job.completed": (1, str(number))}
    run, root = recorded.one("run audit"), recorded.one("job audit")
    assert len(traces([run, root, recorded.one("wait default")])) == 1
    for span in (run, root):
        assert attributes_of(span)["hybrid_runner.source"] == 1
        assert attributes_of(span)["hybrid_runner.row"] == str(number)
    [event] = run.events
    assert event.name == "row written"
    assert attributes_of(event) == {"hybrid_runner.table": "public.audits"}


async def test_a_late_row_is_an_event_of_its_jobs_trace(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    await attach_audits(database)
    app, form = runner(dsn), await connect(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    await wanted(database)
    async with form.transaction():
        await form.execute("SELECT FROM public.audits FOR UPDATE")
        async with working(app, deaf=True) as worker:
            await worker.settled(1)
    await form.close()
    [event] = recorded.one("run audit").events
    assert event.name == "row late"


async def test_rows_that_were_shown_are_counted_by_what_came_of_it(
    dsn: str, database: Connection
) -> None:
    """D3, D8"""
    await attach_audits(database)
    app, form = runner(dsn), await connect(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    for _ in range(3):
        await wanted(database)
    gone = await wanted(database)
    await database.execute("ALTER TABLE public.audits DISABLE TRIGGER USER")
    await database.execute("DELETE FROM public.audits WHERE id = $1", gone)
    async with form.transaction():
        await form.execute("SELECT FROM public.audits WHERE id = 1 FOR UPDATE")
        async with working(app, deaf=True) as worker:
            await worker.settled(4)
            values = worker.status().metric_values["hybrid_runner_rows_shown_total"]
    await form.close()
    table = "public.audits"
    assert values == {(table, "written"): 2, (table, "locked"): 1, (table, "gone"): 1}
