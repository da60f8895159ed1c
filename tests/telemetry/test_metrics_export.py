"""Metrics by OTLP: what a collector is sent by a real worker, and that a dead one changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.export import exporting_metrics, interval
from hybrid_runner.telemetry.metrics.instruments import NAMED
from hybrid_runner.telemetry.variables import exporters, protocol
from tests.cli.running import worker
from tests.support.ports import free_port
from tests.support.waiting import at_least, until

TASKS = """
from hybrid_runner import Runner
from tests.support.waiting import at_least, until

app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


class Taker:
    """Takes OTLP metrics and keeps the last of each, and whose they were."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self.resource: dict[str, str] = {}
        self.taken = asyncio.Event()

    def ran(self) -> int:
        """The number of runs that were exported."""
        metric = self.metrics.get(table.RUN_DURATION.name)
        return 0 if metric is None else sum(point.count for point in metric.histogram.data_points)

    async def take(self, request: web.Request) -> web.Response:
        message = ExportMetricsServiceRequest.FromString(await request.read())
        for group in message.resource_metrics:
            self.resource = {
                pair.key: pair.value.string_value for pair in group.resource.attributes
            }
            self.metrics |= {
                metric.name: metric for scope in group.scope_metrics for metric in scope.metrics
            }
        self.taken.set()
        return web.Response(
            body=ExportMetricsServiceResponse().SerializeToString(),
            content_type="application/x-protobuf",
        )


async def test_a_collector_is_sent_the_metrics_of_the_page_at_the_interval_and_at_the_end(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """A10"""
    (tmp_path / "tasks.py").write_text(TASKS)
    taker, port = Taker(), free_port()
    application = web.Application()
    application.add_routes([web.post("/v1/metrics", taker.take)])
    serving = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1)
    await serving.setup()
    await web.TCPSite(serving, "127.0.0.1", port).start()
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        "WORKER_ID": "counted",
    }
    try:
        async with worker("tasks:app", "--dsn", dsn, cwd=tmp_path, **variables) as process:
            await process.says("listening on")
            await taker.taken.wait()  # at the interval: nothing ends yet
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'note' FROM generate_series(1, 5)"
            )
            await until(taker.ran, at_least(5))
            assert await process.ends() == 0
    finally:
        await serving.cleanup()
    assert (taker.resource["service.name"], taker.resource["service.instance.id"]) == (
        "hybrid-runner",
        "counted",
    )
    assert taker.metrics.keys() <= NAMED.keys()
    for name, metric in taker.metrics.items():
        assert (metric.description, metric.unit) == (NAMED[name].help, NAMED[name].unit)
    [run] = taker.metrics[table.RUN_DURATION.name].histogram.data_points
    assert run.count == sum(run.bucket_counts) == 5
    assert tuple(run.explicit_bounds) == table.RUN_DURATION.bounds
    assert {pair.key: pair.value.string_value for pair in run.attributes} == {
        "kind": "note",
        "outcome": "completed",
    }
    assert not run.HasField("min")
    looks = taker.metrics[table.LOOKS.name].sum
    assert looks.is_monotonic
    assert (
        looks.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    assert all(0 < point.start_time_unix_nano < point.time_unix_nano for point in looks.data_points)
    assert [point.as_int for point in taker.metrics[table.SLOTS.name].gauge.data_points] == [200]


@pytest.mark.usefixtures("untouched")
async def test_a_dead_collector_is_one_line_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.05")
    asked, longest = 0, 0.0

    def read() -> Mapping[str, Mapping[tuple[str, ...], float]]:
        nonlocal asked
        asked += 1
        return {table.POLLS.name: {("default",): asked}}

    with caplog.at_level(logging.INFO):
        async with exporting_metrics("worker", read):
            while asked < 20:
                began = time.monotonic()
                await asyncio.sleep(0)
                longest = max(longest, time.monotonic() - began)
    lines = [record for record in caplog.records if "exporting metrics" in record.message]
    assert len(lines) == 1, caplog.text
    assert all(
        "not delivered" in record.message for record in caplog.records if record not in lines
    ), caplog.text


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x/v1/metrics"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x/v1/traces"}, False),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, True),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "prometheus"}, False),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": " "}, True),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_standard_variables_decide(environment: dict[str, str], wanted: bool) -> None:
    assert ("otlp" in exporters(environment, "METRICS", ("otlp", "prometheus"))) is wanted


def test_an_exporter_that_is_not_here_and_a_wrong_interval_are_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not exporters({"OTEL_METRICS_EXPORTER": "console"}, "METRICS", ("otlp", "prometheus"))
    assert interval({"OTEL_METRIC_EXPORT_INTERVAL": "soon"}) == interval({}) == timedelta(minutes=1)
    assert interval({"OTEL_METRIC_EXPORT_INTERVAL": "1500"}) == timedelta(seconds=1.5)
    assert [("console" in line, "soon" in line) for line in caplog.messages] == [
        (True, False),
        (False, True),
    ]


def test_a_signals_own_protocol_goes_before_the_common_one() -> None:
    assert protocol({}, "METRICS") == "http/protobuf"
    assert protocol({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "METRICS") == "grpc"
    both = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
    }
    assert protocol(both, "METRICS") == "http/protobuf"


async def test_a_protocol_that_is_not_here_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}).items():
        monkeypatch.setenv(name, value)
    async with exporting_metrics("worker", dict):
        pass
    [line] = caplog.messages
    assert line.startswith("no metrics are exported: OTEL_EXPORTER_OTLP_PROTOCOL=http/json")
