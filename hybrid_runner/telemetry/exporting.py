"""Sends this process's spans where the OTEL_* variables say; imports nothing for it otherwise."""

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
from hybrid_runner.telemetry.seldom import Seldom
from hybrid_runner.telemetry.variables import NO_GRPC, SPEAK_FOR_BOTH, exporters, protocol, resource

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from hybrid_runner.telemetry.outbox import Outbox, Provider

log = logging.getLogger("hybrid_runner.telemetry")

FAREWELL = timedelta(seconds=1.5)
"""What the last spans get at shutdown."""

_SPEAK_AT_EVERY_TRY = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
    "hybrid_runner.telemetry.sending",
)


@asynccontextmanager
async def exporting(worker_id: str) -> AsyncIterator[None]:
    """Export the spans that end in here, if that is configured and the application has not set up OpenTelemetry itself.

    A process has one provider for all its life: it is left open for the next worker.
    """
    wanted = exporters(os.environ, "TRACES", ("otlp", "console"))
    if wanted and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            trace.set_tracer_provider(make_provider(worker_id, wanted))
        except Exception as error:  # whatever the SDK makes of the variables: jobs run without traces too
            log.warning("no spans are exported: %s", error, extra=log_event("telemetry.start_failed"))
    try:
        yield
    finally:
        if (outbox := _outbox()) is not None:
            await _finish(outbox)


def spans_dropped() -> int:
    """Spans that were never delivered, in this process."""
    outbox = _outbox()
    return 0 if outbox is None else outbox.dropped


def spans_sent() -> int:
    """Spans that were delivered, by this process."""
    outbox = _outbox()
    return 0 if outbox is None else outbox.sent


def _outbox() -> Outbox | None:
    """Of our own provider, if this process has one."""
    return getattr(trace.get_tracer_provider(), "outbox", None)


def make_provider(worker_id: str, wanted: tuple[str, ...] = ("otlp",)) -> Provider:
    """A provider whose spans go to these exporters; endpoint, headers, sampler and batches as the OTEL_* variables say."""
    from hybrid_runner.telemetry.outbox import Outbox, Provider  # noqa: PLC0415  # as long as all of us

    Seldom.on("exporting spans", _SPEAK_AT_EVERY_TRY)
    Seldom.on("exporting", SPEAK_FOR_BOTH)
    return Provider(resource(worker_id), Outbox([_make_exporter(name) for name in wanted], os.environ))


def _make_exporter(name: str) -> SpanExporter:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415  # the same

        return ConsoleSpanExporter()
    if protocol(os.environ, "TRACES") == "grpc":
        try:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc  # noqa: PLC0415  # an extra
        except ImportError:
            raise RuntimeError(NO_GRPC) from None
        return Grpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # the same

    return OTLPSpanExporter()


async def _finish(outbox: Outbox) -> None:
    """Send what is left; a collector that is away must not hold up the end."""
    before = outbox.dropped
    delivered = await asyncio.to_thread(outbox.force_flush, round(FAREWELL.total_seconds() * 1000))
    if not delivered or outbox.dropped > before:
        log.warning(
            "the last spans were not delivered: no collector took them within %.1f s",
            FAREWELL.total_seconds(),
            extra=log_event("telemetry.undelivered"),
        )
