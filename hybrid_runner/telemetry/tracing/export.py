"""Exports this process's spans as the OTEL_* variables say. The SDK is imported only then."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from opentelemetry import trace

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog
from hybrid_runner.telemetry.variables import NO_GRPC, SHARED_LOGGERS, exporters, protocol, resource

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from hybrid_runner.telemetry.tracing.span_queue import Provider, SpanQueue

log = logging.getLogger("hybrid_runner.telemetry")

STOP_PATIENCE = timedelta(seconds=1.5)
"""Time for sending the last spans at shutdown."""

_TALKATIVE_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
    "hybrid_runner.telemetry.tracing.delivery",
)


@asynccontextmanager
async def exporting(worker_id: str) -> AsyncIterator[None]:
    """Export spans if that is configured and the application has not set up OpenTelemetry itself.

    A process can have one provider only: it stays open for the next worker.
    """
    wanted = exporters(os.environ, "TRACES", ("otlp", "console"))
    if wanted and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            trace.set_tracer_provider(make_provider(worker_id, wanted))
        except Exception as error:  # from the SDK, about the variables: jobs run without traces too
            log.warning(
                "no spans are exported: %s", error, extra=log_event("telemetry.start_failed")
            )
    try:
        yield
    finally:
        if (span_queue := _span_queue()) is not None:
            await _finish(span_queue)


def spans_dropped() -> int:
    """Spans of this process that were not delivered."""
    span_queue = _span_queue()
    return 0 if span_queue is None else span_queue.dropped


def spans_sent() -> int:
    """Spans of this process that were delivered."""
    span_queue = _span_queue()
    return 0 if span_queue is None else span_queue.sent


def _span_queue() -> SpanQueue | None:
    """The queue of our own provider, if this process has one."""
    return getattr(trace.get_tracer_provider(), "span_queue", None)


def make_provider(worker_id: str, wanted: tuple[str, ...] = ("otlp",)) -> Provider:
    """A provider with these exporters; endpoint, headers, sampler and batch sizes are those of the
    OTEL_* variables.
    """
    from hybrid_runner.telemetry.tracing.span_queue import Provider, SpanQueue  # noqa: PLC0415  # the SDK is slow to import

    RateLimitedLog.on("exporting spans", _TALKATIVE_LOGGERS)
    RateLimitedLog.on("exporting", SHARED_LOGGERS)
    return Provider(
        resource(worker_id), SpanQueue([_make_exporter(name) for name in wanted], os.environ)
    )


def _make_exporter(name: str) -> SpanExporter:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415  # slow

        return ConsoleSpanExporter()
    if protocol(os.environ, "TRACES") == "grpc":
        try:
            from opentelemetry.exporter.otlp.proto.grpc import trace_exporter  # noqa: PLC0415  # an extra
        except ImportError:
            raise RuntimeError(NO_GRPC) from None
        return trace_exporter.OTLPSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # slow

    return OTLPSpanExporter()


async def _finish(span_queue: SpanQueue) -> None:
    """Send what is left: a collector that is away holds up the end for STOP_PATIENCE at most."""
    before = span_queue.dropped
    delivered = await asyncio.to_thread(
        span_queue.force_flush, round(STOP_PATIENCE.total_seconds() * 1000)
    )
    if not delivered or span_queue.dropped > before:
        log.warning(
            "the last spans were not delivered: no collector took them within %.1f s",
            STOP_PATIENCE.total_seconds(),
            extra=log_event("telemetry.undelivered"),
        )
