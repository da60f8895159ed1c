"""A real OpenTelemetry Collector with the shipped otel-collector.yaml, before the Jaeger of the
fixture `jaeger`.

The fixture `otel_collector` is one for the whole session: send OTLP to `endpoint` (HTTP) or
`grpc_endpoint`, scrape `metrics_page`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import telemetry_programs
from tests.support.outside import answers, first_program, running
from tests.support.ports import free_ports

VARIABLE = "HYBRID_RUNNER_TEST_OTELCOL"
CONFIGURATION = Path(__file__).parents[2] / "otel-collector.yaml"


@dataclass(frozen=True)
class OpenTelemetryCollector:
    """Where it listens."""

    endpoint: str
    grpc_endpoint: str
    metrics_page: str
    """The metrics that were sent to it, for Prometheus."""
    own_metrics_page: str
    """How it fares itself."""
    health_page: str


def find() -> str | None:
    """The program: the one named, else what tools/fetch compiled."""
    return first_program(os.environ.get(VARIABLE), telemetry_programs.folder() / "otelcol")


def why_absent() -> str:
    """One line for a person."""
    return (
        f"there is no OpenTelemetry Collector: tools/fetch/telemetry compiles it, or {VARIABLE}"
        " names one"
    )


@contextmanager
def started(
    jaeger: str, settings: Mapping[str, str] | None = None
) -> Iterator[OpenTelemetryCollector]:
    """Another one, that sends traces to this host:port; settings are variables of
    otel-collector.yaml.
    """
    program = find()
    assert program is not None
    http, grpc, metrics, own, health = free_ports(5)
    variables = {
        "COLLECTOR_HOST": "127.0.0.1",
        "COLLECTOR_HTTP_PORT": str(http),
        "COLLECTOR_GRPC_PORT": str(grpc),
        "COLLECTOR_PROMETHEUS_PORT": str(metrics),
        "COLLECTOR_OWN_METRICS_PORT": str(own),
        "COLLECTOR_HEALTH_PORT": str(health),
        "JAEGER_ENDPOINT": jaeger,
        **(settings or {}),
    }
    place = OpenTelemetryCollector(
        f"http://127.0.0.1:{http}",
        f"127.0.0.1:{grpc}",
        f"http://127.0.0.1:{metrics}/metrics",
        f"http://127.0.0.1:{own}/metrics",
        f"http://127.0.0.1:{health}/",
    )
    with running(
        [program, "--config", str(CONFIGURATION)],
        lambda: answers(place.health_page),
        environment=variables,
    ):
        yield place
