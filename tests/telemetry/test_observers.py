"""What counts and draws must never cost a job."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.model.events import BatchSettled, LookMade
from hybrid_runner.telemetry import observers
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog
from hybrid_runner.telemetry.metrics.counters import Counters
from tests.support.working import outcome, working


async def test_an_observer_that_fails_costs_a_line_and_no_job(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At the claim its jobs would run nowhere, at the write they would be written again and
    again.
    """
    app = Runner(dsn)

    @app.job("note")
    async def note(_: Any) -> int:
        return 7

    def fail(_self: Counters, _what: LookMade | BatchSettled) -> None:
        raise OverflowError("too much")

    monkeypatch.setattr(observers.log, "filters", [])  # other tests may have had this minute's line
    monkeypatch.setattr(RateLimitedLog, "_of_purpose", {})
    monkeypatch.setattr(Counters, "on_look", fail)
    monkeypatch.setattr(Counters, "on_settled", fail)
    with caplog.at_level(logging.ERROR, "hybrid_runner"):
        async with working(app) as worker:
            assert [(await outcome(app, "note")).result for _ in range(3)] == [7, 7, 7]
            assert worker.status().settled == {"completed": 3}
    lines = [record.getMessage() for record in caplog.records if "too much" in record.getMessage()]
    assert len(lines) == 1
    assert "OverflowError" in lines[0]
