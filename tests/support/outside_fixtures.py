"""Fixtures for what is not Python's, each skipped (or, in .ci/run, failed) where it is absent;
pytest's head says what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.support import engine as engines
from tests.support import jaeger as jaegers
from tests.support import opentelemetry_collector as collectors
from tests.support import prometheus as prometheuses
from tests.support.engine import Engine
from tests.support.jaeger import Jaeger
from tests.support.opentelemetry_collector import OpenTelemetryCollector
from tests.support.outside import line, missing
from tests.support.prometheus import Prometheus, Promtool


def pytest_report_header() -> list[str]:
    """Say what is there, and loudly what is not."""
    engine = engines.find()
    return [
        f"jaeger: {line(jaegers.find(), jaegers.why_absent())}",
        f"opentelemetry collector: {line(collectors.find(), collectors.why_absent())}",
        f"prometheus: {line(prometheuses.find(), prometheuses.why_absent())}",
        f"docker engine: {line(engine.host if engine else None, engines.why_absent())}",
    ]


@pytest.fixture(scope="session")
def jaeger() -> Iterator[Jaeger]:
    """One Jaeger for all tests."""
    if not jaegers.find():
        missing(jaegers.why_absent())
    with jaegers.started() as jaeger:
        yield jaeger


@pytest.fixture(scope="session")
def otel_collector(jaeger: Jaeger) -> Iterator[OpenTelemetryCollector]:
    """One Collector for all tests, before that Jaeger."""
    if not collectors.find():
        missing(collectors.why_absent())
    with collectors.started(jaeger.grpc_endpoint) as collector:
        yield collector


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """The tool that checks rules and metrics."""
    program = prometheuses.find("promtool")
    return Promtool(program) if program else missing(prometheuses.why_absent())


@pytest.fixture(scope="session")
def prometheus() -> Callable[..., AbstractContextManager[Prometheus]]:
    """What starts a server that scrapes these pages."""
    if not prometheuses.find():
        missing(prometheuses.why_absent())
    return prometheuses.started


@pytest.fixture(scope="session")
def docker_engine() -> Engine:
    """The engine that answers."""
    return engines.find() or missing(engines.why_absent())
