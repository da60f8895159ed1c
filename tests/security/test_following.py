"""Following jobs with a login that may read and nothing else."""

from __future__ import annotations

import logging
from contextlib import aclosing

import pytest

from tests.support.logins import Login, Logins
from tests.support.streams import Stepwise
from tests.support.working import runner, working


async def test_a_login_that_may_only_read_polls_and_says_so_once(
    login: Logins, caplog: pytest.LogCaptureFixture, dsn: str
) -> None:
    """B13: it may not hear which jobs change."""
    caplog.set_level(logging.INFO, "hybrid_runner.web")
    steps = Stepwise(dsn)
    reads = runner(login(Login.READER))
    async with steps.app, reads, working(steps.app):
        job = await steps.app.enqueue("steps", {})
        async with aclosing(reads.events(job.id)) as events:
            while (await anext(events)).name != "running":
                pass
            steps.say(None)
            assert [event.name async for event in events] == ["completed"]
    told = [record for record in caplog.records if record.name.startswith("hybrid_runner.web")]
    assert len([record for record in told if "are polled" in record.getMessage()]) == 1
    # Its worker may warn of a machine that stands still.
    assert not [record for record in told if record.levelno >= logging.WARNING]
