"""What the dashboard asks about rows of attached tables, asked of a real Prometheus."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.cli.running import worker
from tests.deploy.test_dashboard import QUESTIONS, asked
from tests.support.ports import free_port
from tests.support.prometheus import Prometheus
from tests.support.waiting import until, until_fetched
from tests.worker.test_late_rows import LATE, attach

OF_ROWS = re.compile("hybrid_runner_(rows_shown|row_|late_rows|refused_rows)")
TASKS = """
from hybrid_runner import Runner

app = Runner()

@app.job("audit")
async def audit(payload: dict) -> None:
    pass
"""
INSERT = "INSERT INTO public.audits (website_url) VALUES ('a.example')"
LIVE = "SELECT count(*) FROM hybrid_runner.jobs"


@pytest.mark.timeout(150)
async def test_every_question_about_rows_has_an_answer(
    dsn: str,
    database: Connection,
    tmp_path: Path,
    prometheus: Callable[..., AbstractContextManager[Prometheus]],
) -> None:
    """D8: rows are begun, held, written late, and cancelled."""
    questions = [one for one in QUESTIONS if OF_ROWS.search(one)]
    assert len(questions) == 7
    await attach(database)
    (tmp_path / "tasks.py").write_text(TASKS)
    port = free_port()
    given = {"HYBRID_RUNNER_DSN": dsn, "HYBRID_RUNNER_HTTP_PORT": str(port)}
    form = await connect(dsn)
    async with worker("tasks:app", cwd=tmp_path, **given) as process:
        await process.says("listening on")
        with prometheus({"worker": f"http://127.0.0.1:{port}/metrics"}) as server:
            # Scraped before and after: what grows from nothing has no increase.
            for _ in range(2):
                await database.execute("SELECT hybrid_runner.pause('default')")
                await database.execute(INSERT)
                await database.execute("UPDATE public.audits SET status = 'cancelled'")
                await until_fetched(database, LIVE, 0)
                await database.execute(INSERT)
                async with form.transaction():
                    await form.execute("SELECT FROM public.audits FOR UPDATE")
                    await database.execute("SELECT hybrid_runner.resume('default')")
                    # Its end, too: else that would write the row, and nothing would be late.
                    await until_fetched(database, LIVE, 0)
                    await until_fetched(database, LATE, 1)
                await until_fetched(database, LATE, 0)
                await server.until("hybrid_runner_late_rows_written_total")
            for question in questions:
                await until(partial(server.query, asked(question)), patience=100, what=question)
    await form.close()
