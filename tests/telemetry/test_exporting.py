from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from hybrid_runner.storage.connections import Connection
from hybrid_runner.telemetry import exporting
from tests.cli.running import worker
from tests.support.collector import Collector, Received

TASKS = """
from hybrid_runner import Runner

app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
INSERT = "INSERT INTO hybrid_runner.jobs (kind, payload, traceparent) VALUES ('note', '{}', $1) RETURNING id"
ENDPOINT = "http://127.0.0.1:4318"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


async def spans_of_a_job(
    dsn: str, database: Connection, folder: Path, traceparent: str | None = f"00-{TRACE}-{PARENT}-01", **environment: str
) -> tuple[list[Received], int]:
    """What a collector has once a worker that ran one job has stopped, and the job."""
    async with Collector() as collector:
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
        async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, **environment) as process:
            await process.says("listening on default")
            job = await database.fetchval(INSERT, traceparent)
            await process.says("archived", job)
            assert await process.ends() == 0
        assert not [line for line in process.lines if line["level"] == "warning"]
        return collector.spans, job


async def test_the_run_of_a_job_is_a_span_in_the_trace_of_whoever_enqueued_it(dsn: str, database: Connection, folder: Path) -> None:
    """F4; nothing but the shutdown sends it."""
    [(span, resource)], job = await spans_of_a_job(dsn, database, folder, WORKER_ID="worker-7")
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == ("run note", TRACE, PARENT)
    assert span.kind == span.SPAN_KIND_CONSUMER
    attributes = {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}
    assert attributes["messaging.message.id"] == str(job)
    assert (resource["service.name"], resource["service.instance.id"]) == ("hybrid-runner", "worker-7")


async def test_a_job_without_a_trace_starts_one(dsn: str, database: Connection, folder: Path) -> None:
    """F4"""
    [(span, _)], _ = await spans_of_a_job(dsn, database, folder, None)
    assert (span.name, span.parent_span_id) == ("run note", b"")


async def test_the_standard_variables_hold(dsn: str, database: Connection, folder: Path) -> None:
    named = {"OTEL_SERVICE_NAME": "thumbnails", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=staging"}
    [(_, resource)], _ = await spans_of_a_job(dsn, database, folder, **named)
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("thumbnails", "staging")


@pytest.mark.parametrize(
    "variables", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_SAMPLER": "always_off"}]
)
async def test_tracing_can_be_turned_off(variables: dict[str, str], dsn: str, database: Connection, folder: Path) -> None:
    assert (await spans_of_a_job(dsn, database, folder, **variables))[0] == []


@pytest.mark.parametrize("answers", ["refused", "never"])
async def test_a_collector_that_is_away_neither_fills_the_log_nor_delays_the_end(
    answers: str, dsn: str, database: Connection, folder: Path
) -> None:
    async with Collector(deaf=True) as collector:
        endpoint = collector.endpoint if answers == "never" else "http://127.0.0.1:1"
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "10", "OTEL_METRICS_EXPORTER": "none"}
        async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, **environment) as process:
            await process.says("listening on default")
            for _ in range(20):
                job = await database.fetchval(INSERT, None)
                await process.says("archived", job)
            begun = time.monotonic()
            assert await process.ends() == 0
            assert time.monotonic() - begun < 3
    warnings = [line["message"] for line in process.lines if line["level"] in ("warning", "error")]
    assert "the last spans were not delivered" in warnings[-1]
    assert len(warnings) <= 2, warnings


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ENDPOINT}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}, False),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_the_variables_decide(environment: dict[str, str], answer: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert exporting.wanted(environment) is answer
    assert not caplog.records


@pytest.mark.parametrize(
    ("environment", "answer", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, "zipkin"),
        ({"OTEL_TRACES_EXPORTER": "otlp,console"}, True, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False, "grpc"),
    ],
)
def test_what_the_variables_ask_for_in_vain_is_said(
    environment: dict[str, str], answer: bool, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert exporting.wanted(environment) is answer
    [record] = caplog.records
    assert named in record.getMessage()


async def test_a_provider_that_the_application_has_set_up_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)
    monkeypatch.setattr(exporting, "make_provider", lambda _: pytest.fail("there is one already"))
    async with exporting.exporting("worker-1"):
        pass


async def test_variables_that_the_sdk_refuses_cost_the_traces_and_not_the_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1")
    with caplog.at_level(logging.WARNING, "hybrid_runner"):
        async with exporting.exporting("worker-1"):
            pass
    [record] = caplog.records
    assert "no spans are exported" in record.getMessage()
