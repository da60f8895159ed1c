"""Spans that the test's own provider received."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from hybrid_runner.telemetry import observers
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog
from hybrid_runner.telemetry.metrics import export as metrics_export
from hybrid_runner.telemetry.tracing import export as exporting
from hybrid_runner.telemetry.variables import SHARED_LOGGERS
from tests.support.recorded import RecordedSpans, recording

TALKATIVE = {
    *exporting._TALKATIVE_LOGGERS,
    *metrics_export._TALKATIVE_LOGGERS,
    *SHARED_LOGGERS,
    observers.log.name,
}


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers as in a process that has just begun: what another test said a moment ago is no reason
    to be silent.
    """
    monkeypatch.setattr(RateLimitedLog, "_of_purpose", {})
    for name in TALKATIVE:
        monkeypatch.setattr(logging.getLogger(name), "filters", [])


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedSpans]:
    with recording(monkeypatch) as recorded:
        yield recorded
