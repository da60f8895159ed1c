"""Exports the metrics of /metrics to an OTLP collector too, if the OTEL_* variables say so. The SDK
is imported only then.
"""

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

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.telemetry.variables import (
    NO_GRPC,
    SHARED_LOGGERS,
    exporters,
    protocol,
    resource,
    value,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter

log = logging.getLogger("hybrid_runner.telemetry")

DEFAULT_INTERVAL = timedelta(seconds=60)
STOP_PATIENCE = timedelta(seconds=0.5)
"""Time for sending the last values at shutdown; the last spans have their own time after that."""

_TALKATIVE_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.common._aggregation",
    "opentelemetry.exporter.otlp.proto.common._internal.metrics_encoder",
    "hybrid_runner.telemetry.send",
)
_sending = logging.getLogger("hybrid_runner.telemetry.send")


@asynccontextmanager
async def exporting_metrics(
    worker_id: str, read: Callable[[], MetricValues]
) -> AsyncIterator[None]:
    """Export what `read` returns, if that is configured. `read` is called in the thread that
    exports.
    """
    sender = None
    wanted = exporters(os.environ, "METRICS", ("otlp", "prometheus"))
    if "otlp" in wanted:  # nothing to do for prometheus: /metrics is always there
        try:
            sender = Sender(make_exporter(), worker_id, read, interval(os.environ))
        except Exception as error:  # from the SDK, about the variables: jobs run without it too
            log.warning(
                "no metrics are exported: %s", error, extra=log_event("telemetry.start_failed")
            )
    if sender is None:
        yield
        return
    sender.start()
    try:
        yield
    finally:
        if not await asyncio.to_thread(sender.stop, STOP_PATIENCE.total_seconds()):
            log.warning(
                "the last metrics were not delivered: no collector took them within %.1f s",
                STOP_PATIENCE.total_seconds(),
                extra=log_event("telemetry.undelivered"),
            )


def interval(environment: Mapping[str, str]) -> timedelta:
    """OTEL_METRIC_EXPORT_INTERVAL, in milliseconds; a minute, with a warning, if it is no such
    number.
    """
    text = value(environment, "OTEL_METRIC_EXPORT_INTERVAL")
    if not text:
        return DEFAULT_INTERVAL
    if not text.isdecimal() or not 1 <= int(text) <= 86_400_000:
        log.warning(
            "OTEL_METRIC_EXPORT_INTERVAL: %r is not a number of milliseconds, using 60000",
            text,
            extra=log_event("telemetry.setting_ignored"),
        )
        return DEFAULT_INTERVAL
    return timedelta(milliseconds=int(text))


def make_exporter() -> MetricExporter:
    """An exporter for OTLP over HTTP, or over gRPC where that is installed; endpoint, headers and
    time-out are those of the OTEL_* variables.
    """
    if protocol(os.environ, "METRICS") == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  # slow

        return OTLPMetricExporter()
    try:
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter  # noqa: PLC0415  # slow, and an extra
    except ImportError:
        raise ValueError(NO_GRPC) from None
    return metric_exporter.OTLPMetricExporter()


class Sender:
    """A thread that sends all values at an interval, and once more at the end."""

    def __init__(
        self,
        exporter: MetricExporter,
        worker_id: str,
        read: Callable[[], MetricValues],
        every: timedelta,
    ) -> None:
        from hybrid_runner.telemetry.metrics.otlp import Translator  # noqa: PLC0415  # imports the SDK

        self._exporter = exporter
        self._read = read
        self._every = every.total_seconds()
        self._translator = Translator(resource(worker_id), time.time_ns())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        RateLimitedLog.on("exporting metrics", _TALKATIVE_LOGGERS)
        RateLimitedLog.on("exporting", SHARED_LOGGERS)
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Send once more, and return whether that was done within `patience` seconds."""
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
            _sending.exception("the metrics could not be sent")
