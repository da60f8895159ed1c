"""How a batch of spans reaches one exporter."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.spans import Recorded, readable
from hybrid_runner.telemetry.wire import encode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger("hybrid_runner.telemetry.sending")

Batch = Sequence[Recorded | ReadableSpan]
Send = Callable[[Batch], bool]
"""Whether the batch was taken; it raises if there is one among them that cannot be sent, whoever takes it."""

LARGEST = 16 * 1024 * 1024
"""Bytes of one request. Collectors refuse more than 20 MiB, unless told otherwise."""


def way_to(exporter: SpanExporter, resource: Resource) -> Send:
    """The short one if the exporter takes bytes, else the one that every exporter has."""
    post = _post(exporter)
    return _converted(exporter, resource) if post is None else _encoded(post, resource)


def _converted(exporter: SpanExporter, resource: Resource) -> Send:
    def send(batch: Batch) -> bool:
        spans = [readable(span, resource) if isinstance(span, Recorded) else span for span in batch]
        try:
            return exporter.export(spans) is SpanExportResult.SUCCESS
        except OSError as error:
            complain_of("spans", error)
            return False

    return send


def _encoded(post: Callable[[bytes], Any], resource: Resource) -> Send:
    origin = origin_of(resource)

    def send(batch: Batch) -> bool:
        ours = [span for span in batch if isinstance(span, Recorded)]
        others = [span for span in batch if not isinstance(span, Recorded)]
        data = (encode(ours, origin) if ours else b"") + (_encode_others(others) if others else b"")
        if len(data) > LARGEST:
            raise ValueError(f"{len(data):,} bytes are too many for a request")
        try:
            return bool(post(data).success)
        except Exception as error:
            complain_of("spans", error)
            return False

    return send


def complain_of(what: str, error: Exception) -> None:
    """At most once a minute."""
    log.warning("%s cannot be exported: %s: %s", what, type(error).__name__, error, extra=log_event("telemetry.send_failed"))


def origin_of(resource: Resource) -> bytes:
    """What a ResourceSpans says beside its spans, in the SDK's words: a resource has values of more kinds than our spans."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # long

    nothing = Recorded("", SpanKind.INTERNAL, 1, 1, None, 0, 0, {})
    [sent] = encode_spans([readable(nothing, resource)]).resource_spans
    sent.ClearField("scope_spans")
    return bytes(sent.SerializeToString())


def _encode_others(spans: Sequence[ReadableSpan]) -> bytes:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # few have any

    return bytes(encode_spans(spans).SerializeToString())


def _post(exporter: SpanExporter) -> Callable[[bytes], Any] | None:
    """What the SDK's exporter over HTTP gives its bytes to. Not of its public face: of another version it may not be there."""
    post = getattr(getattr(exporter, "_client", None), "export", None)
    if post is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # long

    try:
        takes = list(inspect.signature(post).parameters)
    except (TypeError, ValueError):
        return None
    return post if type(exporter) is OTLPSpanExporter and takes == ["data"] else None
