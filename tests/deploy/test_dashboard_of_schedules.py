"""What the dashboard asks about schedules, asked of a real Prometheus."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.cli.running import worker
from tests.deploy.test_dashboard import QUESTIONS, asked
from tests.support.ports import free_port
from tests.support.prometheus import Prometheus
from tests.support.waiting import until

OF_SCHEDULES = re.compile("hybrid_runner_(tick|schedule)")
TASKS = """
from hybrid_runner import Runner

app = Runner()

@app.job("tick")
async def tick(payload: dict) -> None:
    pass

app.schedule("pulse", tick, every="1s", overlap="allow")
"""


@pytest.mark.timeout(150)
async def test_every_question_about_schedules_has_an_answer(
    dsn: str, tmp_path: Path, prometheus: Callable[..., AbstractContextManager[Prometheus]]
) -> None:
    questions = [one for one in QUESTIONS if OF_SCHEDULES.search(one)]
    assert len(questions) == 6
    (tmp_path / "tasks.py").write_text(TASKS)
    port = free_port()
    given = {"HYBRID_RUNNER_DSN": dsn, "HYBRID_RUNNER_HTTP_PORT": str(port)}
    async with worker("tasks:app", cwd=tmp_path, **given) as process:
        await process.says("listening on")
        with prometheus({"worker": f"http://127.0.0.1:{port}/metrics"}) as server:
            for question in questions:
                await until(partial(server.query, asked(question)), patience=120, what=question)
