"""Sends the figures of /metrics to an OTLP collector too, if the OTEL_* variables ask for it; imports nothing for it otherwise."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from hybrid_runner.telemetry.figures import Figures
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.seldom import Seldom
from hybrid_runner.telemetry.variables import NO_GRPC, SPEAK_FOR_BOTH, exporters, protocol, resource, value

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter

log = logging.getLogger("hybrid_runner.telemetry")

USUAL_INTERVAL = timedelta(seconds=60)
FAREWELL = timedelta(seconds=0.5)
"""What the last figures get at shutdown; the last spans have their own time after that."""

_SPEAK_AT_EVERY_TRY = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.common._aggregation",
    "opentelemetry.exporter.otlp.proto.common._internal.metrics_encoder",
    "hybrid_runner.telemetry.send",
)
_sending = logging.getLogger("hybrid_runner.telemetry.send")


@asynccontextmanager
async def exporting_metrics(worker_id: str, read: Callable[[], Figures]) -> AsyncIterator[None]:
    """Send what `read` gives, from a thread of its own, if that is configured; `read` is called there."""
    sender = None
    if exporters(os.environ, "METRICS", ("otlp", "prometheus"))[:1] == ("otlp",):  # /metrics is always there
        try:
            sender = Sender(make_exporter(), worker_id, read, interval(os.environ))
        except Exception as error:  # whatever the SDK makes of the variables: jobs run without metrics too
            log.warning("no metrics are exported: %s", error, extra=log_event("telemetry.start_failed"))
    if sender is None:
        yield
        return
    sender.start()
    try:
        yield
    finally:
        if not await asyncio.to_thread(sender.stop, FAREWELL.total_seconds()):
            log.warning(
                "the last metrics were not delivered: no collector took them within %.1f s",
                FAREWELL.total_seconds(),
                extra=log_event("telemetry.undelivered"),
            )


def interval(environment: Mapping[str, str]) -> timedelta:
    """OTEL_METRIC_EXPORT_INTERVAL, in milliseconds; what is no such number is a warning, and a minute."""
    text = value(environment, "OTEL_METRIC_EXPORT_INTERVAL")
    if not text:
        return USUAL_INTERVAL
    if not text.isdecimal() or not 1 <= int(text) <= 86_400_000:
        log.warning(
            "OTEL_METRIC_EXPORT_INTERVAL: %r is not a number of milliseconds, using 60000",
            text,
            extra=log_event("telemetry.setting_ignored"),
        )
        return USUAL_INTERVAL
    return timedelta(milliseconds=int(text))


def make_exporter() -> MetricExporter:
    """OTLP by HTTP, or by gRPC where that is installed; endpoint, headers and time-out as the OTEL_* variables say."""
    if protocol(os.environ, "METRICS") == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  # slow

        return OTLPMetricExporter()
    try:
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter  # noqa: PLC0415  # the same, and may be absent
    except ImportError:
        raise ValueError(NO_GRPC) from None
    return metric_exporter.OTLPMetricExporter()


class Sender:
    """A thread that sends at an interval, and once more at the end; nobody waits for it but `stop`, and that not for long."""

    def __init__(self, exporter: MetricExporter, worker_id: str, read: Callable[[], Figures], every: timedelta) -> None:
        from hybrid_runner.telemetry.otlp import Translator  # noqa: PLC0415  # imports the SDK

        self._exporter = exporter
        self._read = read
        self._every = every.total_seconds()
        self._translator = Translator(resource(worker_id), time.time_ns())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        """From now on."""
        Seldom.on("exporting metrics", _SPEAK_AT_EVERY_TRY)
        Seldom.on("exporting", SPEAK_FOR_BOTH)
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Send once more; whether that was done in time."""
        self._over.set()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._send()
        self._send()
        self._exporter.shutdown()

    def _send(self) -> None:
        try:
            self._exporter.export(self._translator.translate(self._read(), time.time_ns()))
        except Exception:
            _sending.exception("the figures could not be sent")
