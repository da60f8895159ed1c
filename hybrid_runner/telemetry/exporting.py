"""Sends this process's spans to an OTLP collector when the OTEL_* variables ask for it; imports nothing for it otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from opentelemetry import trace

from hybrid_runner.telemetry.seldom import Seldom

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("hybrid_runner.telemetry")

SERVICE_NAME = "hybrid-runner"
FAREWELL = timedelta(seconds=1.5)
"""What the last spans get at shutdown."""

_SPEAK_AT_EVERY_TRY = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
)


@asynccontextmanager
async def exporting(worker_id: str) -> AsyncIterator[None]:
    """Export the spans that end in here, if that is configured and the application has not set up OpenTelemetry itself."""
    provider = None
    if wanted(os.environ) and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            provider = make_provider(worker_id)
        except Exception as error:  # whatever the SDK makes of the variables: jobs run without traces too
            log.warning("no spans are exported: %s", error)
    if provider is None:
        yield
        return
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        await _finish(provider)


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for OTLP; what they ask for and is not here is a warning."""

    def value(name: str) -> str:
        return environment.get(name, "").strip().lower()

    if value("OTEL_SDK_DISABLED") == "true":
        return False
    exporters = {name.strip() for name in value("OTEL_TRACES_EXPORTER").split(",")} - {""}
    if unknown := exporters - {"otlp", "none"}:
        log.warning("OTEL_TRACES_EXPORTER: %s is not here, only otlp and none", ", ".join(sorted(unknown)))
    endpoint = value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or value("OTEL_EXPORTER_OTLP_ENDPOINT")
    asked = "otlp" in exporters if exporters else bool(endpoint)
    protocol = value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or value("OTEL_EXPORTER_OTLP_PROTOCOL")
    if asked and protocol not in {"", "http/protobuf"}:
        log.warning("no spans are exported: OTEL_EXPORTER_OTLP_PROTOCOL=%s is not here, only http/protobuf (port 4318)", protocol)
        return False
    return asked


def make_provider(worker_id: str) -> TracerProvider:
    """Batches of spans over OTLP/HTTP; endpoint, headers, sampler, batches and limits as the OTEL_* variables say."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # as long as all of us
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # the same
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # the same

    processor = BatchSpanProcessor(OTLPSpanExporter())
    provider = TracerProvider(resource=_resource(worker_id), shutdown_on_exit=False)  # at exit it would wait for half a minute
    provider.add_span_processor(processor)
    seldom = Seldom("exporting spans")
    for name in _SPEAK_AT_EVERY_TRY:
        logging.getLogger(name).addFilter(seldom)
    return provider


def _resource(worker_id: str) -> Resource:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415  # as above

    ours = {"service.name": SERVICE_NAME, "service.instance.id": worker_id}
    return Resource.create(ours | dict(OTELResourceDetector().detect().attributes))


async def _finish(provider: TracerProvider) -> None:
    """Send what is left, in a thread that Python does not wait for: a collector that is away must not hold up the end."""
    loop = asyncio.get_running_loop()
    sent = asyncio.Event()

    def send() -> None:
        provider.shutdown()
        with contextlib.suppress(RuntimeError):  # too late, the loop is closed
            loop.call_soon_threadsafe(sent.set)

    threading.Thread(target=send, name="last spans", daemon=True).start()
    try:
        await asyncio.wait_for(sent.wait(), FAREWELL.total_seconds())
    except TimeoutError:
        log.warning("the last spans were not delivered: no collector took them within %.1f s", FAREWELL.total_seconds())
