from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.tracing import export
from hybrid_runner.telemetry.variables import exporters
from tests.cli.running import worker
from tests.support.collector import Collector, GrpcCollector, Received

TASKS = """
from datetime import timedelta
from hybrid_runner import Runner
from hybrid_runner.telemetry.tracing import export

export.STOP_PATIENCE = timedelta(seconds={patience})
app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass
"""
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, payload, traceparent) VALUES ('note', '{}', $1)"
    " RETURNING id"
)
ENDPOINT = "http://127.0.0.1:4318"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of an application whose worker sends its last spans however long this machine takes."""
    (tmp_path / "tasks.py").write_text(TASKS.format(patience=120))
    return tmp_path


async def spans_of_a_job(
    dsn: str,
    database: Connection,
    folder: Path,
    traceparent: str | None = f"00-{TRACE}-{PARENT}-01",
    **environment: str,
) -> tuple[list[Received], int]:
    """What a collector has once a worker that ran one job has stopped, and the job."""
    async with Collector() as collector:
        environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "3600000",
        }
        async with worker(
            "tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, **environment
        ) as process:
            await process.says("listening on default")
            job = await database.fetchval(INSERT, traceparent)
            await process.says("completed, attempt", job)
            assert await process.ends() == 0
        assert not [line for line in process.lines if line["level"] == "warning"]
        return collector.spans, job


def named(spans: list[Received], name: str) -> Received:
    """The only span of that name."""
    [found] = [received for received in spans if received.span.name == name]
    return found


async def test_the_run_of_a_job_is_a_span_in_the_trace_of_whoever_enqueued_it(
    dsn: str, database: Connection, folder: Path
) -> None:
    """F4; nothing but the shutdown sends it."""
    spans, job = await spans_of_a_job(dsn, database, folder, WORKER_ID="worker-7")
    (span, resource), (root, _) = named(spans, "run note"), named(spans, "job note")
    assert sorted(span.name for span, _ in spans) == [
        "claim default",
        "job note",
        "run note",
        "settle default",
        "wait default",
    ]
    assert (span.trace_id.hex(), span.parent_span_id) == (TRACE, root.span_id)
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.kind == span.SPAN_KIND_CONSUMER
    attributes = {
        pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes
    }
    assert attributes["messaging.message.id"] == str(job)
    assert (resource["service.name"], resource["service.instance.id"]) == (
        "hybrid-runner",
        "worker-7",
    )


async def test_a_job_without_a_trace_starts_one(
    dsn: str, database: Connection, folder: Path
) -> None:
    """F4"""
    spans, _ = await spans_of_a_job(dsn, database, folder, None)
    root, run = named(spans, "job note").span, named(spans, "run note").span
    assert (root.parent_span_id, run.trace_id) == (b"", root.trace_id)


async def test_the_standard_variables_hold(dsn: str, database: Connection, folder: Path) -> None:
    variables = {
        "OTEL_SERVICE_NAME": "thumbnails",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=staging",
    }
    spans, _ = await spans_of_a_job(dsn, database, folder, **variables)
    assert {
        (each.resource["service.name"], each.resource["deployment.environment.name"])
        for each in spans
    } == {("thumbnails", "staging")}


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_SAMPLER": "always_off"},
    ],
)
async def test_tracing_can_be_turned_off(
    variables: dict[str, str], dsn: str, database: Connection, folder: Path
) -> None:
    assert (await spans_of_a_job(dsn, database, folder, **variables))[0] == []


@pytest.mark.parametrize("answers", ["refused", "never"])
async def test_a_collector_that_is_away_neither_fills_the_log_nor_delays_the_end(
    answers: str, dsn: str, database: Connection, folder: Path
) -> None:
    """The exporter would wait for it for an hour: whoever waited for the exporter would not end
    within the time of a test.
    """
    usual = export.STOP_PATIENCE.total_seconds()
    (folder / "tasks.py").write_text(TASKS.format(patience=usual))
    async with Collector(deaf=True) as collector:
        endpoint = collector.endpoint if answers == "never" else "http://127.0.0.1:1"
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "10",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "3600",
        }
        async with worker(
            "tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, **environment
        ) as process:
            await process.says("listening on default")
            for _ in range(20):
                job = await database.fetchval(INSERT, None)
                await process.says("completed, attempt", job)
            assert await process.ends() == 0
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
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            },
            True,
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
            True,
        ),
    ],
)
def test_the_variables_decide(
    environment: dict[str, str], answer: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert exporters(environment, "TRACES", ("otlp", "console")) == (("otlp",) if answer else ())
    assert not caplog.records


@pytest.mark.parametrize(
    ("environment", "answer", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, "zipkin"),
        ({"OTEL_TRACES_EXPORTER": "otlp,jaeger"}, True, "jaeger"),
    ],
)
def test_what_the_variables_ask_for_in_vain_is_said(
    environment: dict[str, str], answer: bool, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert bool(exporters(environment, "TRACES", ("otlp", "console"))) is answer
    [record] = caplog.records
    assert named in record.getMessage()


async def test_a_provider_that_the_application_has_set_up_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)
    monkeypatch.setattr(export, "make_provider", lambda *_: pytest.fail("there is one already"))
    async with export.exporting("worker-1"):
        pass


async def test_variables_that_the_sdk_refuses_cost_the_traces_and_not_the_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")

    def refuse(_name: str) -> None:
        raise ValueError("OTEL_SOMETHING is not what it should be")

    monkeypatch.setattr(export, "_make_exporter", refuse)
    with caplog.at_level(logging.WARNING, "hybrid_runner"):
        async with export.exporting("worker-1"):
            pass
    [record] = caplog.records
    assert "no spans are exported" in record.getMessage()


async def test_spans_go_to_the_console_where_that_is_asked_for(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with worker(
        "tasks:app",
        "--dsn",
        dsn,
        "--log-level",
        "debug",
        cwd=folder,
        OTEL_TRACES_EXPORTER="console",
    ) as process:
        await process.says("listening on default")
        job = await database.fetchval(INSERT, None)
        await process.says("completed, attempt", job)
        assert await process.ends(silent=False) == 0
        assert '"name": "run note"' in process.printed


async def test_a_protocol_that_is_not_here_costs_the_traces_and_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    async with export.exporting("worker-1"):
        pass
    [record] = caplog.records
    assert record.getMessage().startswith(
        "no spans are exported: OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not here"
    )


async def test_grpc_without_its_extra_is_one_line_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with caplog.at_level(logging.WARNING, "hybrid_runner"):
        async with export.exporting("worker-1"):
            pass
    [record] = caplog.records
    assert "pip install 'hybrid-runner[grpc]'" in record.getMessage()


async def test_spans_go_over_grpc_where_that_is_asked_for(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with GrpcCollector() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        }
        async with worker(
            "tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder, **variables
        ) as process:
            await process.says("listening on default")
            job = await database.fetchval(INSERT, None)
            await process.says("completed, attempt", job)
            assert await process.ends() == 0
        assert {"job note", "run note"} < {received.span.name for received in collector.spans}


TWICE = """
import asyncio
from datetime import timedelta
from hybrid_runner import Runner
from hybrid_runner.telemetry.tracing import export

export.STOP_PATIENCE = timedelta(minutes=2)
app = Runner()

@app.job("note")
async def note(payload: dict) -> None:
    pass

async def main():
    for name in ("first", "second"):
        shown, stop = asyncio.Event(), asyncio.Event()
        work = asyncio.create_task(app.work(None, lambda _: shown.set(), lambda: stop))
        await shown.wait()
        await (await app.enqueue("note", {"of": name})).wait(120)
        stop.set()
        await work

asyncio.run(main())
"""


async def test_a_second_worker_of_a_process_sends_its_spans_too(dsn: str, tmp_path: Path) -> None:
    """A process has one provider; it must outlast the first worker."""
    async with Collector() as collector:
        variables = {
            "HYBRID_RUNNER_DSN": dsn,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_METRICS_EXPORTER": "none",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", TWICE, cwd=tmp_path, env=os.environ | variables
        )
        assert await process.wait() == 0
        assert [received.span.name for received in collector.spans].count("run note") == 2
