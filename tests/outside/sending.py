"""Telemetry by OTLP over HTTP, made with the SDK as applications do it."""

from __future__ import annotations

import asyncio

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

SERVICE = {"service.name": "sender", "service.instance.id": "one", "zone": "here"}
ATTRIBUTES: dict[str, bool | int | float | list[str]] = {
    "number": 7,
    "quick": True,
    "share": 0.5,
    "words": ["a", "b"],
}


def send_trace(endpoint: str) -> str:
    """A parent that failed, and its child, which is also linked to it; the trace's id."""
    provider = TracerProvider(resource=Resource(SERVICE), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span(
        "parent", kind=SpanKind.CONSUMER, attributes=ATTRIBUTES
    ) as parent:
        parent.add_event("first", {"way": "ring"})
        parent.add_event("second")
        with tracer.start_as_current_span("child", links=[Link(parent.get_span_context())]):
            pass
        parent.set_status(Status(StatusCode.ERROR, "no luck"))
    provider.shutdown()
    return f"{parent.get_span_context().trace_id:032x}"


def send_metrics(endpoint: str, name: str, amount: int) -> None:
    """A counter of that name with a label."""
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(f"{endpoint}/v1/metrics"), export_interval_millis=60_000
    )
    provider = MeterProvider([reader], resource=Resource(SERVICE), shutdown_on_exit=False)
    provider.get_meter("tests").create_counter(name, unit="1").add(amount, {"queue": "images"})
    provider.shutdown()


async def sent_trace(endpoint: str) -> str:
    """The same beside the event loop."""
    return await asyncio.to_thread(send_trace, endpoint)


async def sent_metrics(endpoint: str, name: str, amount: int) -> None:
    """The same beside the event loop."""
    await asyncio.to_thread(send_metrics, endpoint, name, amount)
