from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from opentelemetry.exporter.otlp.proto.common._internal import _encode_attributes
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

from hybrid_runner.telemetry import observers
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog
from hybrid_runner.telemetry.metrics.export import Sender
from hybrid_runner.telemetry.observers import Observers
from hybrid_runner.telemetry.tracing.delivery import log_failure
from hybrid_runner.telemetry.tracing.export import make_provider
from tests.telemetry.conftest import TALKATIVE


def said(limit: RateLimitedLog, text: str) -> str | None:
    """What comes out of the filter."""
    record = logging.LogRecord("talkative", logging.WARNING, __file__, 1, "%s", (text,), None)
    return record.getMessage() if limit.filter(record) else None


def test_one_line_a_minute_with_the_number_of_those_held_back() -> None:
    now = [100.0]
    limit = RateLimitedLog("exporting spans", lambda: now[0])
    assert said(limit, "refused") == "exporting spans: refused"
    assert [said(limit, "refused") for _ in range(7)] == [None] * 7
    now[0] += 59
    assert said(limit, "refused") is None
    now[0] += 2
    assert (
        said(limit, "still refused")
        == "exporting spans: still refused (8 more lines since the last one)"
    )
    now[0] += 61
    assert said(limit, "refused again") == "exporting spans: refused again"


def test_a_long_line_is_shortened_to_one_that_can_be_read() -> None:
    line = said(RateLimitedLog("exporting spans"), "a stack\ntrace " * 1000)
    assert line is not None
    assert "\n" not in line
    assert len(line) < 350


@pytest.mark.usefixtures("untouched")
def test_spans_that_cannot_be_exported_are_one_line_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_provider("worker-1", ("console",)).shutdown()
    for _ in range(5):
        log_failure("a span", ValueError("it is too large"))
    assert [record.getMessage() for record in caplog.records] == [
        "exporting spans: a span cannot be exported: ValueError: it is too large"
    ]


@pytest.mark.usefixtures("untouched")
def test_each_logger_is_kept_quiet_once_however_many_workers_a_process_had(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(3):
        Observers([])
        make_provider("worker-1", ("console",)).shutdown()
        sender = Sender(
            OTLPMetricExporter(endpoint="http://127.0.0.1:1", timeout=0.01),
            "worker-1",
            dict,
            timedelta(hours=1),
        )
        sender.start()
        assert sender.stop(30)
    assert {name: len(logging.getLogger(name).filters) for name in TALKATIVE} == dict.fromkeys(
        TALKATIVE, 1
    )
    observers.log.error("it failed")
    assert caplog.messages[-1] == "observing: it failed"


@pytest.mark.usefixtures("untouched")
def test_an_attribute_that_cannot_be_sent_is_one_line_and_not_a_traceback_for_each_span(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_provider("worker-1", ("console",)).shutdown()
    for _ in range(5):
        _encode_attributes({"strange": object()})
    [record] = caplog.records
    assert record.getMessage().startswith("exporting: Failed to encode key strange")
    assert record.exc_info is None
