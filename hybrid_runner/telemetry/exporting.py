"""Sends this process's spans where the OTEL_* variables say; imports nothing for it otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from opentelemetry import trace

from hybrid_runner.telemetry.seldom import Seldom
from hybrid_runner.telemetry.variables import NO_GRPC, SPEAK_FOR_BOTH, exporters, protocol, resource

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from hybrid_runner.telemetry.outbox import Provider

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
    """Export the spans that end in here, if that is configured and the application has not set up OpenTelemetry itself."""
    provider = None
    wanted = exporters(os.environ, "TRACES", ("otlp", "console"))
    if wanted and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            provider = make_provider(worker_id, wanted)
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


def spans_dropped() -> int:
    """Spans that were never delivered, in this process."""
    outbox = getattr(trace.get_tracer_provider(), "outbox", None)
    return 0 if outbox is None else outbox.dropped


def spans_sent() -> int:
    """Spans that were delivered, by this process."""
    outbox = getattr(trace.get_tracer_provider(), "outbox", None)
    return 0 if outbox is None else outbox.sent


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


async def _finish(provider: Provider) -> None:
    """Send what is left, in a thread that Python does not wait for: a collector that is away must not hold up the end."""
    loop = asyncio.get_running_loop()
    sent = asyncio.Event()

    def send() -> None:
        provider.shutdown()
        with contextlib.suppress(RuntimeError):  # too late, the loop is closed
            loop.call_soon_threadsafe(sent.set)

    before = provider.outbox.dropped
    threading.Thread(target=send, name="last spans", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(sent.wait(), FAREWELL.total_seconds())
    if not sent.is_set() or provider.outbox.dropped > before:
        log.warning("the last spans were not delivered: no collector took them within %.1f s", FAREWELL.total_seconds())
