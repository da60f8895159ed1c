"""What the dashboard asks about monitored services, asked of a real Prometheus."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import worker
from tests.deploy.test_dashboard import QUESTIONS, asked
from tests.monitors.polling import store
from tests.support.ports import free_port
from tests.support.prometheus import Prometheus
from tests.support.waiting import until

OF_MONITORS = re.compile("hybrid_runner_monitor_")
APP = "hybrid_runner.monitors.standalone:app"


@pytest.mark.timeout(200)
async def test_every_question_about_monitored_services_has_an_answer(
    monitors_dsn: str,
    monitored: Connection,
    tmp_path: Path,
    prometheus: Callable[..., AbstractContextManager[Prometheus]],
) -> None:
    """C13: a service is polled, one cannot be, and both are told of and measured."""
    questions = [one for one in QUESTIONS if OF_MONITORS.search(one)]
    assert len(questions) == 12
    port = free_port()
    given = {"HYBRID_RUNNER_DSN": monitors_dsn, "HYBRID_RUNNER_HTTP_PORT": str(port)}
    fakes = FakeServices([FakeService("orders"), FakeService("stock", "closing")])
    async with fakes, worker(APP, cwd=tmp_path, **given) as process:
        await process.says("listening on")
        with prometheus({"worker": f"http://127.0.0.1:{port}/metrics"}) as server:
            await store(monitored, fakes, "orders")
            await server.until("hybrid_runner_monitor_polls_total")
            # Scraped before and after: what grows from nothing has no increase.
            await store(monitored, fakes, "stock")
            for question in questions:
                await until(partial(server.query, asked(question)), patience=120, what=question)
