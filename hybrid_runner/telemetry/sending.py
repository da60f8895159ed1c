"""How a batch of spans reaches one exporter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from hybrid_runner.telemetry.spans import Recorded, readable
from hybrid_runner.telemetry.wire import encode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

Batch = Sequence[Recorded | ReadableSpan]
Send = Callable[[Batch], bool]
"""Whether the batch was taken; it raises if one of them cannot be encoded."""

LARGEST = 16 * 1024 * 1024
"""Bytes of one request; a larger one is sent in parts. Collectors refuse more than 20 MiB, unless told otherwise."""


def way_to(exporter: SpanExporter, resource: Resource) -> Send:
    """The short one if the exporter takes bytes, else the one that every exporter has."""
    post = _post(exporter)
    return _converted(exporter, resource) if post is None else _encoded(post, resource)


def _converted(exporter: SpanExporter, resource: Resource) -> Send:
    def send(batch: Batch) -> bool:
        spans = [readable(span, resource) if isinstance(span, Recorded) else span for span in batch]
        return exporter.export(spans) is SpanExportResult.SUCCESS

    return send


def _encoded(post: Callable[[bytes], Any], resource: Resource) -> Send:
    def send(batch: Batch) -> bool:
        data = encode([span for span in batch if isinstance(span, Recorded)], resource)
        if others := [span for span in batch if not isinstance(span, Recorded)]:
            data += _encode_others(others)
        if len(data) > LARGEST and len(batch) > 1:
            half = len(batch) // 2
            return send(batch[:half]) and send(batch[half:])
        return bool(post(data).success)

    return send


def _encode_others(spans: Sequence[ReadableSpan]) -> bytes:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # few have any

    return bytes(encode_spans(spans).SerializeToString())


def _post(exporter: SpanExporter) -> Callable[[bytes], Any] | None:
    """What the SDK's exporter over HTTP gives its bytes to. Not of its public face: of another version it may not be there."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # long

    post = getattr(getattr(exporter, "_client", None), "export", None)
    if type(exporter) is not OTLPSpanExporter or post is None:
        return None
    try:
        takes = list(inspect.signature(post).parameters)
    except (TypeError, ValueError):
        return None
    return post if takes == ["data"] else None
