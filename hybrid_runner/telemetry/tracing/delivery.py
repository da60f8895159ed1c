"""Sends a batch of spans to one exporter."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.encoding import encode
from hybrid_runner.telemetry.tracing.spans import RecordedSpan, readable

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger("hybrid_runner.telemetry.tracing.delivery")

Batch = Sequence[RecordedSpan | ReadableSpan]
Send = Callable[[Batch], bool]
"""Returns whether the exporter took the batch; raises if a span of it can never be sent."""

LARGEST = 16 * 1024 * 1024
"""Bytes of one request. Collectors refuse more than 20 MiB by default."""


def sender_for(exporter: SpanExporter, resource: Resource) -> Send:
    """Send encoded bytes if the exporter can take them; else convert to spans of the SDK."""
    post = _post_of(exporter)
    return _send_converted(exporter, resource) if post is None else _send_encoded(post, resource)


def _send_converted(exporter: SpanExporter, resource: Resource) -> Send:
    def send(batch: Batch) -> bool:
        spans = [
            readable(span, resource) if isinstance(span, RecordedSpan) else span for span in batch
        ]
        try:
            return exporter.export(spans) is SpanExportResult.SUCCESS
        except OSError as error:
            log_failure("spans", error)
            return False

    return send


def _send_encoded(post: Callable[[bytes], Any], resource: Resource) -> Send:
    resource_bytes = encoded_resource(resource)

    def send(batch: Batch) -> bool:
        ours = [span for span in batch if isinstance(span, RecordedSpan)]
        others = [span for span in batch if not isinstance(span, RecordedSpan)]
        data = (encode(ours, resource_bytes) if ours else b"") + (
            _encode_others(others) if others else b""
        )
        if len(data) > LARGEST:
            raise ValueError(f"{len(data):,} bytes are too many for a request")
        try:
            return bool(post(data).success)
        except Exception as error:
            log_failure("spans", error)
            return False

    return send


def log_failure(what: str, error: Exception) -> None:
    """Log a warning; the rate limit lets one a minute through."""
    log.warning(
        "%s cannot be exported: %s: %s",
        what,
        type(error).__name__,
        error,
        extra=log_event("telemetry.send_failed"),
    )


def encoded_resource(resource: Resource) -> bytes:
    """The part of a ResourceSpans beside its spans, encoded by the SDK: a resource's values have
    more types than those of our spans.
    """
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # long

    nothing = RecordedSpan("", SpanKind.INTERNAL, 1, 1, None, 0, 0, {})
    [sent] = encode_spans([readable(nothing, resource)]).resource_spans
    sent.ClearField("scope_spans")
    return bytes(sent.SerializeToString())


def _encode_others(spans: Sequence[ReadableSpan]) -> bytes:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # few spans are not ours

    return bytes(encode_spans(spans).SerializeToString())


def _post_of(exporter: SpanExporter) -> Callable[[bytes], Any] | None:
    """The function that the SDK's OTLP/HTTP exporter gives its bytes to; None for other exporters.
    It is not public, so another version of the SDK may lack it.
    """
    post = getattr(getattr(exporter, "_client", None), "export", None)
    if post is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # long

    try:
        takes = list(inspect.signature(post).parameters)
    except (TypeError, ValueError):
        return None
    return post if type(exporter) is OTLPSpanExporter and takes == ["data"] else None
